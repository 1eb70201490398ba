//! What went wrong, and the exit code that says so.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use tenure::{ConnectError, NotSetUp, PartitionsError, StoreError, UrlError};

use crate::output;

/// How a command ended that did what it was asked: 0, or the code of the program that it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit(pub u8);

impl Exit {
    /// Done.
    pub const DONE: Self = Self(0);
    /// The answer is no, and has been said.
    pub const NO: Self = Self(1);
}

/// Why a command did not do what it was asked. The message says what is now true.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The answer is no.
    #[error("{0}")]
    No(String),
    /// It was asked in the wrong way.
    #[error("{0}")]
    Usage(String),
    /// The store cannot be reached, or not be used.
    #[error("{0}")]
    Store(String),
    /// The store is there, but Tenure was never used on it.
    #[error(
        "{0}; check the store URL, or start `tenure run` or `tenure node` with it, which sets the store up \
         (if nodes are running that use it, put it back instead)"
    )]
    NotSetUp(String),
    /// Leadership was lost, and that was to be the end.
    #[error("{0}")]
    Lost(String),
    /// The program cannot be run; with the code that shells use for it.
    #[error("{message}")]
    Program {
        /// 126: not executable. 127: not found.
        code: u8,
        /// What is wrong.
        message: String,
    },
    /// The system refused something.
    #[error("{0}")]
    System(String),
    /// Nobody reads what we write any more.
    #[error("nobody reads the output any more")]
    PipeClosed,
}

impl Failure {
    pub fn system(error: impl Error) -> Self {
        Self::System(chain(&error))
    }

    pub const fn code(&self) -> u8 {
        match self {
            Self::No(_) | Self::System(_) => 1,
            Self::Usage(_) => 2,
            Self::Store(_) | Self::NotSetUp(_) => 69,
            Self::Lost(_) => 75,
            Self::Program { code, .. } => *code,
            Self::PipeClosed => 0,
        }
    }

    /// Says it on stderr, and gives the exit code.
    pub fn say(&self, json: bool) -> ExitCode {
        let code = self.code();
        match self {
            Self::PipeClosed => {}
            _ if json => {
                let told = serde_json::json!({"error": self.to_string(), "exit_code": code});
                output::complain(&told.to_string());
            }
            _ => output::complain(&format!("tenure: {self}")),
        }
        ExitCode::from(code)
    }
}

/// An error with all that caused it, in one line, without saying anything twice.
pub fn chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_message = cause.to_string();
        if !message.contains(&cause_message) {
            message = format!("{message}: {cause_message}");
        }
        source = cause.source();
    }
    message
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(chain(&error))
    }
}

impl From<PartitionsError> for Failure {
    fn from(error: PartitionsError) -> Self {
        match error {
            PartitionsError::Store(error) => error.into(),
            PartitionsError::Name(_) | PartitionsError::NoLedger | PartitionsError::TooMany { .. } => {
                Self::Usage(chain(&error))
            }
            other => Self::No(chain(&other)),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match &error {
            ConnectError::Url(_) | ConnectError::FeatureOff { .. } => Self::Usage(chain(&error)),
            ConnectError::Store(StoreError::Misconfigured(reason)) if reason.is::<NotSetUp>() => {
                Self::NotSetUp(reason.downcast_ref().map(|NotSetUp(place)| place.clone()).unwrap_or_default())
            }
            // What a store itself finds wrong with its URL.
            other if caused_by_url(other) => Self::Usage(chain(&error)),
            _ => Self::Store(chain(&error)),
        }
    }
}

fn caused_by_url(error: &(dyn Error + 'static)) -> bool {
    error.is::<UrlError>() || error.source().is_some_and(caused_by_url)
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::System(error.to_string()),
        }
    }
}
