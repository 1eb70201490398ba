//! The words of `tenure raft`.

use clap::{Args, Subcommand};

/// Who belongs to the group of a raft:// store, and changing that
#[derive(Subcommand, Debug)]
#[command(after_help = "Example: tenure raft members --store raft://h1:7101,h2:7101,h3:7101")]
pub enum Raft {
    Members(Members),
    Add(Add),
    Remove(Remove),
    Snapshot(Snapshot),
}

/// List the members: where they are, who leads the group, and how far each is behind
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure raft members --json | jq -r .address")]
pub struct Members {}

/// Give a vote to the member that was started at this address, and waits
///
/// If another member was at this address before, the new one takes its place.
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure raft add h4:7101")]
pub struct Add {
    /// Where it is reached
    #[arg(value_name = "ADDR")]
    pub address: String,
}

/// Take a member out of the group; it may be dead
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure raft remove h2:7101")]
pub struct Remove {
    /// Its address, or its id
    #[arg(value_name = "MEMBER")]
    pub member: String,
}

/// Have the members write a snapshot now, which takes the place of the log before it
#[derive(Args, Debug)]
#[command(after_help = "Example: tenure raft snapshot")]
pub struct Snapshot {
    /// Only the one that is reached there
    #[arg(value_name = "ADDR")]
    pub address: Option<String>,
}
