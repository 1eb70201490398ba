//! The supervisor is dead: its guardian closes its session.

use std::time::Duration;

use tenure::{Instant, SessionId, Setup};
use tenure_store::{Cause, clock};

use super::orders::{Hello, Tenancy};
use crate::{output, store};

/// How long a store that cannot be reached is asked to close the session of a dead supervisor.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it is asked at least, also if the lease is over.
const SHORTEST: Duration = Duration::from_secs(1);
/// The timeout of the first attempt. A connection that hangs must not use up the whole time. Each later attempt has
/// twice as long: a slow store answers one of them, and where the first of several hosts hangs, there is time for the
/// next host.
const FIRST_TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The supervisor is dead, by the kernel's word, and all trees are gone: nothing runs under its session
/// any more, so nobody need wait for it to lapse.
pub fn act_for_the_dead(hello: &Hello, held: Tenancy) {
    let Some(session) = held.session() else { return };
    if let Err(problem) = close(hello, session, held.until()) {
        output::complain(&format!(
            "tenure: the session of the dead supervisor could not be closed, and lapses by itself: {problem}"
        ));
    }
}

fn close(hello: &Hello, session: SessionId, until: Instant) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    // Nobody waits for it longer than the lease lasts, and a store that is away stays away for a while. A lease that is
    // over for its holder, which counts slowly, may still be waited for by others.
    let now = clock::now();
    let until = until.max(now + SHORTEST).min(now + PATIENCE);
    let (mut timeout, mut pause) = (FIRST_TIMEOUT, FIRST_PAUSE);
    runtime.block_on(async {
        let mut problem = String::from("there was no time left");
        while clock::now() < until {
            // Each over a connection of its own. To close a session again changes nothing.
            let attempt = async {
                let namespace = tenure::Namespace::new(&hello.namespace).unwrap_or_default();
                let store = store::open(hello.store.as_deref(), &namespace, Setup::Never).await;
                let store = store.map_err(|error| error.to_string())?;
                store.close(session, Cause::ProcessEnded).await.map_err(|error| error.to_string())
            };
            match tokio::time::timeout(timeout.min(until.since(clock::now())), attempt).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => problem = error,
                Err(_) => problem = String::from("the store did not answer"),
            }
            tokio::time::sleep(pause).await;
            (timeout, pause) = (timeout * 2, (pause * 2).min(LONGEST_PAUSE));
        }
        Err(problem)
    })
}
