//! Openraft's own suite, on our log and our state.

use openraft::testing::{StoreBuilder, Suite};
use tempfile::TempDir;

use crate::disk::Disk;
use crate::log::Log;
use crate::state::State;
use crate::types::{StorageError, Types};

struct Fresh;

impl StoreBuilder<Types, Log, State, TempDir> for Fresh {
    async fn build(&self) -> Result<(TempDir, Log, State), StorageError> {
        // In memory, where there is such a place: a disk would add nothing but its stalls.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let (disk, found) = Disk::open(directory.path()).unwrap();
        let log = Log::new(disk.clone(), found.log, found.purged, found.vote);
        Ok((directory, log, State::new(disk, found.snapshot, 1)?))
    }
}

#[test]
fn log_and_state_are_what_openraft_expects() {
    Suite::test_all(Fresh).unwrap();
}
