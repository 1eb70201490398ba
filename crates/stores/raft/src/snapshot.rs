//! A snapshot on its way from one member to another: in parts, because it may be larger than a frame.

use std::sync::Mutex;

use crate::types::{SnapshotMeta, Vote};
use crate::wire::Chunk;

/// The size of a part. Small enough that heartbeats are not held up behind it on a slow network.
const CHUNK: usize = 1 << 20;

/// The parts of a snapshot. An empty one has one part too.
pub(crate) fn chunks(data: &[u8]) -> impl Iterator<Item = Chunk> + '_ {
    let starts = (0..data.len().max(1)).step_by(CHUNK);
    starts.map(|start| {
        let end = data.len().min(start + CHUNK);
        Chunk { offset: start as u64, data: data[start..end].to_vec(), last: end == data.len() }
    })
}

/// The snapshot that a member is receiving: one at a time. A sender that begins another one replaces it.
#[derive(Default)]
pub(crate) struct IncomingSnapshot {
    partial: Mutex<Option<Partial>>,
}

struct Partial {
    vote: Vote,
    id: String,
    data: Vec<u8>,
}

impl IncomingSnapshot {
    /// Adds a part; all of the snapshot, if that was the last one. A part that comes again replaces what was
    /// received from there on.
    ///
    /// # Errors
    /// The parts before it were not received: the sender has to begin again.
    pub(crate) fn receive(
        &self,
        vote: Vote,
        meta: &SnapshotMeta,
        chunk: Chunk,
    ) -> Result<Option<Vec<u8>>, String> {
        let mut partial = self.partial.lock().expect("nobody panics over a snapshot");
        if chunk.offset == 0 {
            *partial = Some(Partial { vote, id: meta.snapshot_id.clone(), data: Vec::new() });
        }
        let known = partial.as_mut().filter(|known| known.vote == vote && known.id == meta.snapshot_id);
        let offset = usize::try_from(chunk.offset).unwrap_or(usize::MAX);
        let Some(known) = known.filter(|known| offset <= known.data.len()) else {
            return Err(format!(
                "what comes before byte {} of snapshot {} was not received; send it again from its beginning",
                chunk.offset, meta.snapshot_id
            ));
        };
        known.data.truncate(offset);
        known.data.extend(chunk.data);
        Ok(if chunk.last { partial.take().map(|whole| whole.data) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(id: &str) -> SnapshotMeta {
        SnapshotMeta { snapshot_id: id.to_owned(), ..SnapshotMeta::default() }
    }

    fn data(length: usize) -> Vec<u8> {
        (0..length).map(|index| u8::try_from(index % 251).unwrap()).collect()
    }

    #[test]
    fn a_snapshot_of_any_size_comes_together_from_parts_that_fit_into_a_frame() {
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK / 2] {
            let (incoming, vote) = (IncomingSnapshot::default(), Vote::new(1, 1));
            let mut received = None;
            for chunk in chunks(&data(length)) {
                assert!(received.is_none() && chunk.data.len() <= CHUNK);
                // The answer may have been lost, and the part is sent again.
                if !chunk.last {
                    assert_eq!(incoming.receive(vote, &meta("a"), chunk.clone()), Ok(None));
                }
                received = incoming.receive(vote, &meta("a"), chunk).unwrap();
            }
            assert!(received.unwrap() == data(length), "{length}");
        }
    }

    #[test]
    fn parts_of_different_snapshots_or_senders_are_never_mixed() {
        let (incoming, all) = (IncomingSnapshot::default(), data(3 * CHUNK));
        let parts: Vec<_> = chunks(&all).collect();
        let (old, new) = (Vote::new(1, 1), Vote::new(2, 2));
        assert_eq!(incoming.receive(old, &meta("a"), parts[0].clone()), Ok(None));
        assert!(incoming.receive(old, &meta("a"), parts[2].clone()).is_err(), "the second part is missing");
        assert!(incoming.receive(new, &meta("a"), parts[1].clone()).is_err(), "another sender");
        assert!(incoming.receive(old, &meta("b"), parts[1].clone()).is_err(), "another snapshot");
        // Another sender begins: what was received before is dropped.
        assert_eq!(incoming.receive(new, &meta("b"), parts[0].clone()), Ok(None));
        assert!(incoming.receive(old, &meta("a"), parts[1].clone()).is_err());
        assert_eq!(incoming.receive(new, &meta("b"), parts[1].clone()), Ok(None));
        assert!(incoming.receive(new, &meta("b"), parts[2].clone()).unwrap().unwrap() == all);
    }
}
