//! `tenure witness`: a member that votes, and does nothing else.

use tenure::Setup;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Global, Witness};
use crate::failure::{Exit, Failure};
use crate::{output, store};

pub fn witness(global: &Global, asked: &Witness) -> Result<Exit, Failure> {
    if asked.seat.data.is_none() {
        return Err(Failure::Usage(String::from(
            "a witness is a member, and a member needs a directory of its own; name one with --data DIR",
        )));
    }
    crate::runtime()?.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let url = store::url_with_seat(global, &asked.seat)?;
        // As long as it is held, it takes part.
        let member = store::open(url.as_deref(), &global.namespace, Setup::Create).await?;
        output::notice(global.json, "takes part in the group, as a witness");
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        drop(member);
        Ok(Exit::DONE)
    })
}
