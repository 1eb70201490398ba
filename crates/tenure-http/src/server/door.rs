//! The door of a server that stops: nobody comes in any more, and nobody who came in is sent away.

use std::io;
use std::sync::Arc;

use tenure_sys::let_nobody_in;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Those who are connected already, and wait to be accepted. From then on, connections are refused.
///
/// Whoever is connected between the last look at those who wait and the end of the socket would be sent away by the
/// system, perhaps with a request that it has sent, of which nobody could say whether it was executed. So before the
/// last look nobody is let in any more: a client that knocks in that moment hears nothing, and knocks again.
pub(super) fn close(
    listener: TcpListener,
    places: &Arc<Semaphore>,
) -> Vec<(TcpStream, OwnedSemaphorePermit)> {
    let next = |listener: &std::net::TcpListener| -> io::Result<_> {
        let place = Arc::clone(places).try_acquire_owned().map_err(io::Error::other)?;
        let stream = listener.accept()?.0;
        stream.set_nonblocking(true)?;
        Ok((TcpStream::from_std(stream)?, place))
    };
    // Asked directly: what Tokio knows of a socket may be a moment old.
    let Ok(listener) = listener.into_std() else { return Vec::new() };
    if let Err(error) = let_nobody_in(&listener) {
        tracing::debug!(target: "tenure", %error, "somebody may be sent away who was just let in");
    }
    std::iter::from_fn(|| next(&listener).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn once_nobody_is_let_in_any_more_those_who_are_in_are_served_and_others_hear_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut early = TcpStream::connect(address).await.unwrap();
        let_nobody_in(&listener).unwrap();
        let late = tokio::time::timeout(Duration::from_millis(100), TcpStream::connect(address)).await;
        assert!(late.is_err(), "it was let in, or refused: {late:?}");
        let places = Arc::new(Semaphore::new(2));
        let mut waiting = close(listener, &places);
        assert_eq!(waiting.len(), 1);
        let (mut served, _place) = waiting.remove(0);
        early.write_all(b"?").await.unwrap();
        assert_eq!(served.read_u8().await.unwrap(), b'?');
        served.write_all(b"!").await.unwrap();
        assert_eq!(early.read_u8().await.unwrap(), b'!');
        let refused = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
