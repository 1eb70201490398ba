//! How members and clients speak: frames over one TCP connection, a question and its answer at a time.
//!
//! A connection begins with a [`Hello`] that says which protocols the caller speaks; the other side picks one.
//! A frame is its length in four bytes, and that many bytes of postcard. A length beyond the limit ends the
//! connection before anything is read.

use std::{fmt, io};

use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenure_core::Namespace;
use tenure_store::Hint;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::machine::Order;
use crate::types::{MemberId, SnapshotMeta, Types, Vote};
use crate::verbs::{Outcome, Question};

/// The protocols that one side speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Protocols {
    pub oldest: u16,
    pub newest: u16,
}

impl Protocols {
    /// Those of this version. The newest is raised when there is a new word, or one changes its meaning; the
    /// oldest follows a version later, so that members of two versions can work together while they are
    /// replaced one by one. A word that the oldest does not have is not written to the log.
    pub(crate) const OURS: Self = Self { oldest: 3, newest: 3 };

    /// The newest that both speak.
    fn shared(self, other: Self) -> Option<u16> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.oldest == self.newest {
            true => write!(f, "protocol {}", self.newest),
            false => write!(f, "protocols {} to {}", self.oldest, self.newest),
        }
    }
}

/// The first frame of either side. Somebody else's client is not let in with more.
const GREETING_LIMIT: u32 = 1024;
/// Any other frame. A snapshot is sent in many: see [`Rpc::Snapshot`].
pub(crate) const FRAME_LIMIT: u32 = 64 << 20;

const MAGIC: [u8; 8] = *b"tenure\0r";

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Hello {
    magic: [u8; 8],
    oldest: u16,
    newest: u16,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Welcome {
    Spoken(u16),
    NotSpoken { oldest: u16, newest: u16 },
}

/// What is asked of a member.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// From the member that leads, or wants to. `to` is whom it believes to speak to: an address may have
    /// passed to somebody else.
    Raft { group: u128, to: MemberId, rpc: Rpc },
    /// To the member that leads the group.
    Verb(Order),
    /// To the member that leads the group.
    Ask { namespace: Namespace, question: Question },
    /// Hints from now on, until the connection ends.
    Watch { namespace: Namespace },
    /// Who it is, and how it sees the group.
    Who,
    /// Belong to this group from now on, if to none so far. Answered with [`Response::Who`].
    Pledge { group: u128 },
    /// To the member that leads: what the members shall be.
    Change(Change),
    /// Write a snapshot now, and forget the log before it.
    Snapshot,
}

impl Request {
    /// Whether only members ask this, and only of each other. People ask who a member is, too, change the membership and
    /// have snapshots written: such a connection counts as a client's, or those who repeat it would shut out members.
    pub(crate) fn is_between_members(&self) -> bool {
        match self {
            Self::Raft { .. } | Self::Pledge { .. } | Self::Change(Change::Settle { .. }) => true,
            Self::Change(Change::Add { .. } | Change::Remove { .. })
            | Self::Verb(_)
            | Self::Ask { .. }
            | Self::Watch { .. }
            | Self::Who
            | Self::Snapshot => false,
        }
    }
}

/// Openraft's own words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Rpc {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<MemberId>),
    /// A part of a snapshot. Parts come in order, each after the one before was answered; the last one is
    /// answered once the whole snapshot is installed.
    Snapshot {
        vote: Vote,
        meta: SnapshotMeta,
        chunk: Chunk,
    },
}

/// A part of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunk {
    pub offset: u64,
    pub data: Vec<u8>,
    pub last: bool,
}

/// A change of the membership.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Change {
    /// A member says where it is reached now, or that it takes the place of a former one at this address.
    Settle { id: MemberId, address: String },
    /// Whoever is reached there shall vote.
    Add { address: String },
    /// Whoever is reached there, or is called so, shall belong to the group no more.
    Remove { who: String },
}

/// What a member answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Response {
    Raft(Box<RpcResponse>),
    /// From the group: the outcome of a verb or a question, and the group's identity.
    Told {
        group: u128,
        outcome: Box<Outcome>,
    },
    /// Not taken, nothing changed: somebody else leads the group, or nobody that this member knows of.
    Elsewhere {
        leader: Option<String>,
    },
    /// Not taken, nothing changed; it may be another time.
    NotNow(String),
    /// Taken, and nobody knows yet what becomes of it.
    Unknown(String),
    /// Not taken, nothing changed, and somebody has to do something about it.
    Refused(String),
    Hint(Hint),
    /// Nothing new; the connection is alive, and so is the group.
    Alive,
    Who(Box<Who>),
    Done,
}

/// Answers to openraft's own words.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RpcResponse {
    Append(AppendEntriesResponse<MemberId>),
    Vote(VoteResponse<MemberId>),
    Snapshot(SnapshotResponse<MemberId>),
    /// The part of the snapshot was received; the next one may follow.
    Received,
}

/// A member, and the group as it sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Who {
    pub id: MemberId,
    pub address: String,
    pub group: Option<u128>,
    /// Whether it has a log, or is waiting to be given one.
    pub initialised: bool,
    pub version: String,
    pub term: u64,
    pub leader: Option<MemberId>,
    pub members: Vec<MemberView>,
    pub log: LogView,
    /// How long ago, by its own word, a majority confirmed that it leads. Only of the one that leads.
    pub confirmed_ms: Option<u64>,
}

/// A member as another one sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MemberView {
    pub id: MemberId,
    pub address: String,
    pub voter: bool,
    /// How far its log is known to reach; only the member that leads knows.
    pub matched: Option<u64>,
}

/// How much a member keeps.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LogView {
    pub last: Option<u64>,
    pub applied: Option<u64>,
    pub snapshot: Option<u64>,
    pub purged: Option<u64>,
    /// The size of the last snapshot.
    pub snapshot_bytes: u64,
}

/// A connection, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// A connection on which both sides have agreed how to speak.
pub(crate) struct Connection {
    stream: Box<dyn Stream>,
}

fn invalid(problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

fn strangers(who: &str, theirs: Protocols, ours: Protocols) -> io::Error {
    invalid(format!("{who} speaks {theirs}, and we {ours}; upgrade one version at a time"))
}

impl Connection {
    /// Introduces us to a member, who picks the newest protocol that both speak.
    pub(crate) async fn introduce(stream: Box<dyn Stream>, ours: Protocols) -> io::Result<Self> {
        let mut connection = Self { stream };
        let Protocols { oldest, newest } = ours;
        connection.send(&Hello { magic: MAGIC, oldest, newest }).await?;
        match connection.receive_up_to(GREETING_LIMIT).await? {
            Welcome::Spoken(picked) if (oldest..=newest).contains(&picked) => Ok(connection),
            Welcome::Spoken(picked) => Err(invalid(format!("the member wants to speak protocol {picked}"))),
            Welcome::NotSpoken { oldest, newest } => {
                Err(strangers("the member", Protocols { oldest, newest }, ours))
            }
        }
    }

    /// Welcomes whoever has connected to us.
    pub(crate) async fn welcome(stream: Box<dyn Stream>, ours: Protocols) -> io::Result<Self> {
        let mut connection = Self { stream };
        let hello: Hello = connection.receive_up_to(GREETING_LIMIT).await?;
        if hello.magic != MAGIC {
            return Err(invalid("whoever has connected speaks something else"));
        }
        let theirs = Protocols { oldest: hello.oldest, newest: hello.newest };
        let Some(picked) = ours.shared(theirs) else {
            let Protocols { oldest, newest } = ours;
            connection.send(&Welcome::NotSpoken { oldest, newest }).await?;
            return Err(strangers("whoever has connected", theirs, ours));
        };
        connection.send(&Welcome::Spoken(picked)).await?;
        Ok(connection)
    }

    /// Sends one frame.
    pub(crate) async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        // Room for the length goes first: one write, one packet.
        let mut frame = postcard::to_extend(message, vec![0; 4]).map_err(invalid)?;
        let length = u32::try_from(frame.len() - 4).ok().filter(|&length| length <= FRAME_LIMIT);
        let length = length.ok_or_else(|| invalid("the message is larger than a frame may be"))?;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.stream.write_all(&frame).await?;
        self.stream.flush().await
    }

    /// Waits for one frame.
    pub(crate) async fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        self.receive_up_to(FRAME_LIMIT).await
    }

    async fn receive_up_to<T: DeserializeOwned>(&mut self, limit: u32) -> io::Result<T> {
        let length = self.stream.read_u32().await?;
        if length > limit {
            return Err(invalid(format!("a frame of {length} bytes is beyond the limit of {limit}")));
        }
        // Grows with what comes, not with what is announced.
        let mut frame = Vec::new();
        (&mut self.stream).take(u64::from(length)).read_to_end(&mut frame).await?;
        if frame.len() != length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        postcard::from_bytes(&frame).map_err(invalid)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::{Duration, SystemTime};

    use openraft::EntryPayload;
    use tenure_core::{ElectionName, Instant, NodeId, SessionId, Stamp};
    use tenure_store::{
        Cause, Claim, Enlistment, EventQuery, HealthReport, Limit, NodeInfo, Open, Problem, Retention,
    };

    use super::*;
    use crate::clock::Tick;
    use crate::machine::Command;
    use crate::types::Entry;
    use crate::verbs::Verb;

    /// What becomes of a greeting, on both sides.
    async fn greet(caller: Protocols, called: Protocols) -> [io::Result<Connection>; 2] {
        let (here, there) = tokio::io::duplex(64);
        let (here, there) = tokio::join!(
            Connection::introduce(Box::new(here), caller),
            Connection::welcome(Box::new(there), called)
        );
        [here, there]
    }

    #[test]
    fn fuzz_a_frame_that_nobody_would_send_is_understood_or_refused() {
        let change = Change::Settle { id: MemberId::default(), address: String::from("host:7101") };
        let words = |message: &Request| postcard::to_stdvec(message).unwrap();
        let rpc = |rpc| words(&Request::Raft { group: 7, to: 3, rpc });
        let leader = Vote::new(2, 3);
        let log_id = openraft::LogId::new(openraft::CommittedLeaderId::new(2, 3), 41);
        let order =
            |verb| Order { namespace: Namespace::default(), retention: Retention { events: 9 }, verb };
        let (session, election) = (SessionId::from_u128(5), ElectionName::new("nightly").unwrap());
        let verbs = [
            Verb::Open(Open {
                session,
                sequence: 1,
                ttl: Duration::from_secs(10),
                node: NodeInfo::new(NodeId::new("n1").unwrap(), "host"),
                supersedes: Some(SessionId::from_u128(4)),
                over: Some(Stamp { session: SessionId::from_u128(3), sequence: 8 }),
            }),
            Verb::Renew { session, sequence: 7 },
            Verb::Claim(Claim::plain(session, election.clone(), 1)),
            Verb::Close { session, cause: Cause::ProgramExited(1) },
            Verb::Delete { election: election.clone(), force: true },
            Verb::Petition { election: election.clone(), to: NodeId::new("n2").ok() },
            Verb::Retire(Stamp { session, sequence: 7 }),
            Verb::Purge { older_than: Duration::from_secs(60) },
            Verb::Enlist(Enlistment { election: election.clone(), session, document: String::from("{}") }),
            Verb::ReportHealth(HealthReport { session, number: 1, problem: Some(Problem::new("no disk")) }),
        ];
        let questions = [
            Question::Read(election.clone()),
            Question::Candidates(election.clone()),
            Question::Elections,
            Question::Nodes,
            Question::Events(EventQuery { election: None, after: 3, limit: Some(Limit::Newest(9)) }),
            Question::Survey(election),
        ];
        let command = Command {
            tick: Tick {
                writer: 9,
                reading: Instant::from_nanos(1),
                heard: Some((40, Duration::from_millis(3))),
            },
            wall: SystemTime::UNIX_EPOCH,
            orders: verbs.iter().cloned().map(order).collect(),
        };
        let membership = vec![BTreeSet::from([3])];
        let entries = [
            EntryPayload::Blank,
            EntryPayload::Normal(command),
            EntryPayload::Membership(openraft::Membership::new(membership, None)),
        ];
        let entries = entries.map(|payload| Entry { log_id, payload }).to_vec();
        let chunk = Chunk { offset: 1 << 20, data: vec![1, 2, 3], last: true };
        let mut said = vec![
            rpc(Rpc::Append(AppendEntriesRequest {
                vote: leader,
                prev_log_id: Some(log_id),
                entries,
                leader_commit: Some(log_id),
            })),
            rpc(Rpc::Vote(VoteRequest::new(leader, Some(log_id)))),
            rpc(Rpc::Snapshot { vote: leader, meta: SnapshotMeta::default(), chunk }),
            words(&Request::Who),
            words(&Request::Watch { namespace: Namespace::default() }),
            words(&Request::Pledge { group: u128::MAX }),
            words(&Request::Change(change)),
            postcard::to_stdvec(&Response::Elsewhere { leader: Some(String::from("host:7101")) }).unwrap(),
            postcard::to_stdvec(&Hello { magic: MAGIC, oldest: 1, newest: 2 }).unwrap(),
        ];
        said.extend(verbs.map(|verb| words(&Request::Verb(order(verb)))));
        let ask = |question| words(&Request::Ask { namespace: Namespace::default(), question });
        said.extend(questions.map(ask));
        let samples: Vec<&[u8]> = said.iter().map(Vec::as_slice).collect();
        tenure_testkit::fuzz::fuzz(&samples, |bytes| {
            let _ = postcard::from_bytes::<Request>(bytes);
            let _ = postcard::from_bytes::<Response>(bytes);
            let _ = postcard::from_bytes::<Hello>(bytes);
            let _ = postcard::from_bytes::<Welcome>(bytes);
        });
    }

    const fn speaks(oldest: u16, newest: u16) -> Protocols {
        Protocols { oldest, newest }
    }

    #[tokio::test]
    async fn two_versions_next_to_each_other_understand_each_other_whoever_calls() {
        for [caller, called] in [[speaks(1, 1), speaks(1, 2)], [speaks(2, 3), speaks(1, 2)]] {
            let [here, there] = greet(caller, called).await;
            let (mut here, mut there) = (here.unwrap(), there.unwrap());
            let (sent, received) = tokio::join!(here.send(&Request::Who), there.receive::<Request>());
            sent.unwrap();
            assert!(matches!(received.unwrap(), Request::Who));
        }
        assert_eq!(speaks(2, 3).shared(speaks(1, 2)), Some(2));
        assert_eq!(speaks(1, 4).shared(speaks(2, 3)), Some(3));
    }

    #[tokio::test]
    async fn versions_without_a_common_protocol_are_told_so_on_both_sides() {
        let [here, there] =
            greet(speaks(7, 9), speaks(1, 2)).await.map(|side| side.err().unwrap().to_string());
        assert!(here.contains("the member speaks protocols 1 to 2, and we protocols 7 to 9"), "{here}");
        assert!(there.contains("speaks protocols 7 to 9, and we protocols 1 to 2"), "{there}");
    }

    #[tokio::test]
    async fn a_stranger_and_a_frame_beyond_the_limit_are_refused_unread() {
        for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 1, 0, 0, 0]] {
            let (mut here, there) = tokio::io::duplex(64);
            here.write_all(words).await.unwrap();
            let refused = Connection::welcome(Box::new(there), Protocols::OURS).await;
            assert_eq!(refused.err().unwrap().kind(), io::ErrorKind::InvalidData);
        }
    }
}
