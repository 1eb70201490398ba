//! Several writes that happen all or not at all, and what it means when they do not.

use tenure_store::StoreError;
use zookeeper_client::{Client, CreateOptions, Error, MultiWriteError, MultiWriteResult, MultiWriter};

use crate::error::{Over, classify};

/// Why nothing was written.
pub(crate) enum Stopped {
    /// The world has changed since it was read: read it again.
    Stale,
    Failed(StoreError),
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// What it means that one of the writes is refused because of what is there, or is not.
#[derive(Clone, Copy)]
enum Refused {
    /// The session that writes is over.
    SessionLost,
    /// What was read is not so any more.
    Stale,
}

pub(crate) struct Multi<'a> {
    writer: MultiWriter<'a>,
    refused: Vec<Refused>,
    over: Over,
}

/// All that can go wrong in writing down a path is the path, and ours are made by us.
const GOOD: &str = "the paths of this store are well-formed";

impl<'a> Multi<'a> {
    pub(crate) fn new(client: &'a Client, over: Over) -> Self {
        Self { writer: client.new_multi_writer(), refused: Vec::new(), over }
    }

    /// Only if the session is not over, and this is its newest connection: what an older one still has on its
    /// way comes to nothing, or it would come after what was said since.
    pub(crate) fn under(&mut self, session: &str, connection: i32) -> &mut Self {
        self.writer.add_check_version(session, connection).expect(GOOD);
        self.meaning(Refused::SessionLost)
    }

    /// Only if this is there.
    pub(crate) fn exists(&mut self, path: &str) -> &mut Self {
        self.writer.add_check_version(path, -1).expect(GOOD);
        self.meaning(Refused::Stale)
    }

    /// Only if this has not changed.
    pub(crate) fn unchanged(&mut self, path: &str, version: i32) -> &mut Self {
        self.writer.add_check_version(path, version).expect(GOOD);
        self.meaning(Refused::Stale)
    }

    pub(crate) fn create(&mut self, path: &str, data: &[u8], options: &CreateOptions<'_>) -> &mut Self {
        self.writer.add_create(path, data, options).expect(GOOD);
        self.meaning(Refused::Stale)
    }

    pub(crate) fn set(&mut self, path: &str, data: &[u8], version: Option<i32>) -> &mut Self {
        self.writer.add_set_data(path, data, version).expect(GOOD);
        self.meaning(Refused::Stale)
    }

    /// Counts up by one, in the version of a znode that is there as long as the session is.
    pub(crate) fn count(&mut self, path: &str) -> &mut Self {
        self.writer.add_set_data(path, b"", None).expect(GOOD);
        self.meaning(Refused::SessionLost)
    }

    pub(crate) fn delete(&mut self, path: &str) -> &mut Self {
        self.writer.add_delete(path, None).expect(GOOD);
        self.meaning(Refused::Stale)
    }

    fn meaning(&mut self, refused: Refused) -> &mut Self {
        self.refused.push(refused);
        self
    }

    /// The request is on its way when this returns: what is sent later arrives later.
    pub(crate) fn commit(
        mut self,
    ) -> impl Future<Output = Result<Vec<MultiWriteResult>, Stopped>> + Send + use<'a> {
        let commit = self.writer.commit();
        let (refused, over) = (self.refused, self.over);
        async move {
            commit.await.map_err(|error| match error {
                MultiWriteError::OperationFailed { index, source } if is_about_what_is_there(&source) => {
                    match (refused.get(index), source) {
                        (Some(Refused::SessionLost), Error::BadVersion) => {
                            Stopped::Failed(StoreError::indeterminate("a fresh connection has taken over"))
                        }
                        (Some(Refused::SessionLost), _) => Stopped::Failed(StoreError::SessionLost),
                        _ => Stopped::Stale,
                    }
                }
                MultiWriteError::OperationFailed { source, .. }
                | MultiWriteError::RequestFailed { source } => Stopped::Failed(classify(&source, over)),
            })
        }
    }
}

fn is_about_what_is_there(error: &Error) -> bool {
    matches!(error, Error::NoNode | Error::NodeExists | Error::BadVersion | Error::NotEmpty)
}
