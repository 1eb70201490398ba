//! The door: whoever connects is greeted, and answered for as long as it asks.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tenure_core::Namespace;
use tenure_store::StoreError;
use tokio::net::{TcpListener, TcpStream};

use crate::address::Seat;
use crate::admission::Admission;
use crate::place::Place;
use crate::socket;
use crate::tls::Encryption;
use crate::wire::{Connection, Protocols, Request, Response};

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
    pub admission: Arc<Admission>,
}

/// Greets and answers until the engine ends.
pub(crate) async fn serve(listener: TcpListener, door: Door, place: Arc<Place>) {
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
        let (door, place) = (door.clone(), Arc::clone(&place));
        tokio::spawn(async move {
            if let Err(error) = attend(stream, &door, &place).await {
                tracing::debug!(%error, "a connection has ended");
            }
        });
    }
}

/// Serves a connection until it ends.
async fn attend(stream: TcpStream, door: &Door, place: &Place) -> io::Result<()> {
    socket::prepare(&stream)?;
    let closed = door.admission.begin_handshake();
    let first = async {
        let mut connection =
            Connection::welcome(door.encryption.accept(stream).await?, door.protocols).await?;
        let request = connection.receive().await?;
        Ok((connection, request))
    };
    let (connection, request) = tokio::select! {
        first = within(door.admission.limits.handshake, first) => first?,
        _ = closed => return Err(io::Error::other("too many handshakes at a time, and this was the oldest")),
    };
    converse(connection, request, &door.admission, place).await
}

/// Answers one request after the other. A connection that is silent for long, or does not read its answers, is
/// closed: whoever was there is gone, or comes back.
async fn converse(
    mut connection: Connection,
    mut request: Request,
    admission: &Admission,
    place: &Place,
) -> io::Result<()> {
    let mut admitted = None;
    loop {
        admitted = admission.admit(admitted, request.is_between_members());
        if admitted.is_none() {
            let full = format!("{} has no room for another connection", place.address());
            return within(admission.limits.answer, connection.send(&Response::NotNow(full))).await;
        }
        if let Request::Watch { namespace } = request {
            return watch(connection, admission, place, &namespace).await;
        }
        let response = place.answer(request).await;
        within(admission.limits.answer, connection.send(&response)).await?;
        request = match within(admission.limits.idle, connection.receive()).await {
            // Whoever has no more questions goes.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            next => next?,
        };
    }
}

async fn within<T>(limit: Duration, what: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(limit, what).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Tells what this member applies, as long as it belongs to a group that is led. When it does not for long, it
/// would hear of nothing, and the listener had better listen elsewhere.
async fn watch(
    mut connection: Connection,
    admission: &Admission,
    place: &Place,
    namespace: &Namespace,
) -> io::Result<()> {
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
        within(admission.limits.answer, connection.send(&told)).await?;
    }
}

#[cfg(test)]
mod tests {
    use openraft::raft::VoteRequest;
    use tempfile::TempDir;
    use tenure_store::StoreUrl;
    use tenure_testkit::patience::{HANG, patiently};
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::address::Address;
    use crate::admission::Limits;
    use crate::lines::Lines;
    use crate::types::Vote;
    use crate::verbs::Question;
    use crate::wire::Rpc;

    /// Longer than any test takes.
    const NEVER: Duration = Duration::from_secs(3600);

    fn limits() -> Limits {
        Limits { handshake: NEVER, idle: NEVER, answer: NEVER, ..Limits::default() }
    }

    /// A member that belongs to no group yet, and answers nevertheless.
    struct Served {
        address: String,
        place: Arc<Place>,
        _data: TempDir,
    }

    async fn serve_with(limits: Limits) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, data) = (listener.local_addr().unwrap().to_string(), TempDir::new().unwrap());
        let url = format!("raft://{address}?data={}", data.path().display());
        let parsed = Address::of(&StoreUrl::parse(&url).unwrap()).unwrap();
        let lines = Arc::new(Lines::new(Encryption::Plain, Protocols::OURS));
        let place = Place::take(&parsed, parsed.seat.clone().unwrap(), lines).await.unwrap();
        let place = Arc::new(place);
        let admission = Arc::new(Admission::new(limits));
        let door = Door { encryption: Encryption::Plain, protocols: Protocols::OURS, admission };
        tokio::spawn(serve(listener, door, Arc::clone(&place)));
        Served { address, place, _data: data }
    }

    /// A connection of its own, and what is answered to its first request.
    async fn ask(address: &str, request: Request) -> io::Result<(Connection, Response)> {
        let stream = TcpStream::connect(address).await?;
        let mut connection = Connection::introduce(Box::new(stream), Protocols::OURS).await?;
        connection.send(&request).await?;
        let response = connection.receive().await?;
        Ok((connection, response))
    }

    fn of_a_client() -> Request {
        Request::Ask { namespace: Namespace::default(), question: Question::Elections }
    }

    /// Of another group: it is answered, and changes nothing.
    fn of_a_member() -> Request {
        let rpc = Rpc::Vote(VoteRequest::new(Vote::new(1, 1), None));
        Request::Raft { group: 1, to: 1, rpc }
    }

    fn is_answered_to_a_member(response: &Response) -> bool {
        matches!(response, Response::Refused(why) if why.contains("this is member"))
    }

    fn is_refused(response: &Response) -> bool {
        matches!(response, Response::NotNow(why) if why.contains("no room"))
    }

    #[tokio::test]
    async fn a_client_that_has_fallen_silent_makes_room_for_another() {
        let served = serve_with(Limits { clients: 1, idle: Duration::from_millis(50), ..limits() }).await;
        let (mut silent, first) = ask(&served.address, of_a_client()).await.unwrap();
        assert!(!is_refused(&first), "{first:?}");
        patiently(async || match ask(&served.address, of_a_client()).await {
            Ok((_, response)) if !is_refused(&response) => Ok(()),
            other => Err(format!("{:?}", other.map(|(_, response)| response))),
        })
        .await;
        let ended = silent.receive::<Response>().await.unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn clients_that_fill_their_room_do_not_shut_out_members() {
        let served = serve_with(Limits { clients: 1, ..limits() }).await;
        let (mut client, _) = ask(&served.address, of_a_client()).await.unwrap();
        let (_, second) = ask(&served.address, of_a_client()).await.unwrap();
        assert!(is_refused(&second), "{second:?}");
        let (_member, answer) = ask(&served.address, of_a_member()).await.unwrap();
        assert!(is_answered_to_a_member(&answer), "{answer:?}");
        // One that turns out to be a member's makes room for a client.
        client.send(&of_a_member()).await.unwrap();
        let answer = client.receive().await.unwrap();
        assert!(is_answered_to_a_member(&answer), "{answer:?}");
        let (_, third) = ask(&served.address, of_a_client()).await.unwrap();
        assert!(!is_refused(&third), "{third:?}");
    }

    /// `tenure check` and `tenure raft` ask this, also of members that belong to no group.
    #[tokio::test]
    async fn clients_that_ask_who_a_member_is_take_no_room_of_members() {
        let served = serve_with(Limits { clients: 2, members: 1, ..limits() }).await;
        let (mut first, answer) = ask(&served.address, Request::Who).await.unwrap();
        assert!(matches!(answer, Response::Who(_)), "{answer:?}");
        // Nor does one that has been let in as a client's, nor what else people ask.
        let (mut second, _) = ask(&served.address, of_a_client()).await.unwrap();
        for request in [Request::Who, Request::Snapshot] {
            second.send(&request).await.unwrap();
            let answer: Response = second.receive().await.unwrap();
            assert!(!is_refused(&answer), "{answer:?}");
        }
        let (_, third) = ask(&served.address, Request::Who).await.unwrap();
        assert!(is_refused(&third), "{third:?}");
        let (_member, answer) = ask(&served.address, of_a_member()).await.unwrap();
        assert!(is_answered_to_a_member(&answer), "{answer:?}");
        first.send(&Request::Who).await.unwrap();
        let answer = first.receive().await.unwrap();
        assert!(matches!(answer, Response::Who(_)), "{answer:?}");
    }

    #[tokio::test]
    async fn handshakes_that_stall_shut_out_nobody() {
        let served = serve_with(Limits { handshakes: 4, ..limits() }).await;
        let mut stalled = Vec::new();
        for _ in 0..20 {
            stalled.push(TcpStream::connect(&served.address).await.unwrap());
        }
        let (_, answer) = ask(&served.address, Request::Who).await.unwrap();
        assert!(matches!(answer, Response::Who(_)), "{answer:?}");
        assert_eq!(stalled[0].read(&mut [0]).await.unwrap(), 0, "the oldest is closed");
    }

    #[tokio::test]
    async fn one_that_does_not_read_its_answer_is_not_waited_for() {
        let served = serve_with(limits()).await;
        let (here, there) = tokio::io::duplex(8);
        let (_client, connection) = tokio::join!(
            Connection::introduce(Box::new(here), Protocols::OURS),
            Connection::welcome(Box::new(there), Protocols::OURS)
        );
        let admission = Admission::new(Limits { answer: Duration::from_millis(50), ..limits() });
        let served = converse(connection.unwrap(), Request::Who, &admission, &served.place);
        let ended = tokio::time::timeout(HANG, served).await.expect("it is not waited for");
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_peer_that_is_gone_is_noticed_by_the_kernel() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        socket::prepare(&stream).unwrap();
        assert!(rustix::net::sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(rustix::net::sockopt::tcp_user_timeout(&stream).unwrap(), 25_000);
    }
}
