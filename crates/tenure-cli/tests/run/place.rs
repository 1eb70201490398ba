//! The store that a test meets in, and how it is taken away. All that the tests know of its kind.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use tenure_testkit::server::Postgres;

/// Which kind of store.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "every test target takes one of them")]
pub enum Kind {
    /// A file.
    Sqlite,
    /// A server of our own.
    Postgres,
}

/// A store of this kind.
pub enum Place {
    File(PathBuf),
    Server(RefCell<Postgres>),
}

impl Place {
    pub fn new(kind: Kind, directory: &Path) -> Self {
        match kind {
            Kind::Sqlite => Self::File(directory.join("tenure.db")),
            Kind::Postgres => Self::Server(RefCell::new(Postgres::start())),
        }
    }

    pub fn url(&self) -> String {
        match self {
            Self::File(path) => format!("sqlite:{}", path.display()),
            Self::Server(server) => server.borrow().url(),
        }
    }

    /// Nobody reaches it any more.
    pub fn take_away(&self) {
        match self {
            Self::File(path) => std::fs::rename(path, path.with_extension("away")).unwrap(),
            Self::Server(server) => server.borrow_mut().stop(),
        }
    }

    /// It is back, as it was.
    pub fn bring_back(&self) {
        match self {
            Self::File(path) => std::fs::rename(path.with_extension("away"), path).unwrap(),
            Self::Server(server) => server.borrow_mut().launch(),
        }
    }
}
