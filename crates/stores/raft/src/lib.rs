//! Elections among the nodes themselves: a Raft group, and no other server.
//!
//! The state machine that the group replicates is [`tenure_replica`]: the same rules as in every other store.
//! Consensus is openraft's; ours is what it stands on and what stands on it.
//!
//! | file | what it is |
//! |---|---|
//! | `address` | the store URL: where the group is, and what this process is in it |
//! | `verbs`, `machine`, `clock` | what is replicated, as pure state: commands, outcomes, the clock that ages are counted on |
//! | `disk`, `log`, `state` | what a member keeps: on the disk, and as openraft wants to see it |
//! | `wire`, `tls`, `socket`, `lines`, `network`, `snapshot` | how members and clients speak |
//! | `member`, `batch`, `membership`, `forming`, `place` | a member: what it answers, how verbs get into the log, who else belongs, how it came to belong, how it comes back |
//! | `server`, `admission` | the door, and who is let in |
//! | `group`, `news` | the group as one who asks sees it |
//! | `engine` | a runtime of our own, which the application cannot starve |
//! | `store`, `people`, `examination` | the contract, verb by verb; and what is for people |

mod address;
mod admission;
mod batch;
mod clock;
mod disk;
mod engine;
mod examination;
mod forming;
mod group;
mod lines;
mod log;
mod machine;
mod member;
mod membership;
mod network;
mod news;
mod people;
mod place;
mod server;
mod snapshot;
mod socket;
mod state;
mod store;
#[cfg(test)]
mod suite;
mod tls;
mod types;
mod verbs;
mod wire;

pub use people::MemberInfo;
pub use store::RaftStore;
