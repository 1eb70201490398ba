//! The door: whoever connects is greeted, and answered for as long as it asks.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tenure_core::Namespace;
use tenure_store::StoreError;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::address::Seat;
use crate::place::Place;
use crate::tls::Encryption;
use crate::wire::{Connection, Protocols, Request, Response};

/// So many connections at once. Far above an honest number: whoever is refused tries again.
const CONNECTIONS: usize = 2048;
/// How long a greeting may take.
const GREETING: Duration = Duration::from_secs(5);
/// How often a watch shows that it is alive.
pub(crate) const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// So often it does although nobody leads the group: that is longer than an election of the group takes, during
/// which nothing is decided that could be missed.
const ALIVE_UNLED: u32 = 2;

/// Listens where the member is to be reached.
pub(crate) async fn listen(seat: &Seat) -> Result<TcpListener, StoreError> {
    let bind = seat.bind.as_ref().unwrap_or(&seat.address);
    TcpListener::bind(bind).await.map_err(|error| {
        StoreError::misconfigured(format!(
            "the member cannot listen on {bind}: {error}; --raft-listen names another address"
        ))
    })
}

/// How strangers become callers.
#[derive(Clone)]
pub(crate) struct Door {
    pub encryption: Encryption,
    pub protocols: Protocols,
}

/// Greets and answers until the engine ends.
pub(crate) async fn serve(listener: TcpListener, door: Door, place: Arc<Place>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, most likely. It passes.
                tracing::warn!(%error, "a connection was not taken");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else { continue };
        let (door, place) = (door.clone(), Arc::clone(&place));
        tokio::spawn(async move {
            if let Err(error) = attend(stream, &door, &place).await {
                tracing::debug!(%error, "a connection has ended");
            }
            drop(permit);
        });
    }
}

async fn attend(stream: TcpStream, door: &Door, place: &Place) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let greeted = async { Connection::welcome(door.encryption.accept(stream).await?, door.protocols).await };
    let mut connection = tokio::time::timeout(GREETING, greeted).await.map_err(io::Error::other)??;
    loop {
        match connection.receive().await {
            Ok(Request::Watch { namespace }) => return watch(connection, place, &namespace).await,
            Ok(request) => {
                let response = place.answer(request).await;
                connection.send(&response).await?;
            }
            // Whoever has no more questions goes.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Tells what this member applies, as long as it belongs to a group that is led. When it does not for long, it
/// would hear of nothing, and the listener had better listen elsewhere.
async fn watch(mut connection: Connection, place: &Place, namespace: &Namespace) -> io::Result<()> {
    let Ok(member) = place.member() else { return Ok(()) };
    let mut hints = member.state.subscribe(namespace);
    let mut alive = tokio::time::interval(ALIVE_EVERY);
    let mut unled = 0;
    loop {
        let told = tokio::select! {
            hint = hints.next() => match hint {
                Some(hint) => Response::Hint(hint),
                None => return Ok(()),
            },
            _ = alive.tick() => {
                unled = if member.is_led() { 0 } else { unled + 1 };
                if unled > ALIVE_UNLED {
                    return Ok(());
                }
                Response::Alive
            }
        };
        connection.send(&told).await?;
    }
}
