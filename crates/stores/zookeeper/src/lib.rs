//! Elections on a ZooKeeper ensemble.
//!
//! A session of Tenure is a session of ZooKeeper, whose servers alone judge that it is over. Candidates are
//! ephemeral znodes in line; whoever is first when the lease is free is granted it, by one compare-and-set
//! on the election's record. `docs/stores/zookeeper.md` has the layout.
//!
//! | file | what it is |
//! |---|---|
//! | `address`, `access` | the store URL: where the servers are, below which znode; as whom, and over what |
//! | `engine` | a thread with a runtime of its own, which the application cannot starve |
//! | `link` | connections: every one is opened there, and in the same way |
//! | `barrier` | reads that are no older than now, whichever server answers |
//! | `paths`, `documents` | where everything is, and what it looks like |
//! | `view` | an election as it is: its record, and who stands in line |
//! | `multi` | several writes that happen all or not at all |
//! | `inner`, `seats` | what all verbs share: the sessions of this store, their requests, and whom to tell |
//! | `silence` | how long a session had been silent when it ended, for the history |
//! | `sessions`, `claims`, `resignation`, `outside` | the verbs that change something |
//! | `ledger`, `leaves` | the same for partitions, and their entries |
//! | `registry`, `history`, `examination` | those that do not |
//! | `layout`, `foreign` | elections that are shared with other libraries, in their znodes |
//! | `news` | watches: hints, and never truth |
//! | `error` | what each failure means for the caller |
//! | `store` | the contract, verb by verb |

mod access;
mod address;
mod barrier;
mod claims;
mod documents;
mod engine;
mod error;
mod examination;
mod foreign;
mod health;
mod history;
mod inner;
mod layout;
mod leaves;
mod ledger;
mod link;
mod multi;
mod news;
mod outside;
mod paths;
mod random;
mod registry;
mod resignation;
mod seats;
mod sessions;
mod silence;
mod store;
mod view;

pub use store::ZooKeeperStore;
pub use zookeeper_client as client;
