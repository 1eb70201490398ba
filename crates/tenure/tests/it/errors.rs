//! Every error leads to what caused it.

use std::error::Error;
use std::io;
use std::time::Duration;

use tenure::{
    ConnectError, ElectionError, Ending, LeadError, NameError, NodeId, NotLeader, PartitionsError, Reason,
    StartError, StoreError, SuperviseError, Term, TransactionError, TransferError,
};

use crate::common::{Manner, Wrapped, brief, memory, soon};

/// The error and what caused it, as texts.
fn chain(error: &(dyn Error + 'static)) -> Vec<String> {
    std::iter::successors(Some(error), |error| (*error).source()).map(ToString::to_string).collect()
}

/// Whether this I/O error is somewhere among the causes.
fn is_caused_by(error: &(dyn Error + 'static), kind: io::ErrorKind) -> bool {
    std::iter::successors(error.source(), |error| (*error).source())
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|cause| cause.kind() == kind))
}

fn refused() -> StoreError {
    StoreError::unavailable(io::Error::from(io::ErrorKind::ConnectionRefused))
}

fn bad_name() -> NameError {
    NodeId::new("").unwrap_err()
}

#[test]
fn every_error_of_a_store_leads_to_what_the_driver_said() {
    let failed: Vec<Box<dyn Error>> = vec![
        Box::new(refused()),
        Box::new(ConnectError::from(refused())),
        Box::new(ElectionError::from(refused())),
        Box::new(PartitionsError::from(refused())),
        Box::new(PartitionsError::from(ElectionError::from(refused()))),
        Box::new(TransferError::from(refused())),
        Box::new(LeadError::<String>::from(ElectionError::from(refused()))),
        Box::new(TransactionError::<io::Error>::from(tenure_store::TransactionError::from(refused()))),
        Box::new(StartError::TimedOut {
            limit: Duration::from_secs(1),
            problem: refused().to_string(),
            source: Some(refused()),
        }),
        Box::new(StartError::Misconfigured {
            problem: refused().to_string(),
            source: Some(Box::new(refused())),
        }),
    ];
    for error in failed {
        assert!(is_caused_by(&*error, io::ErrorKind::ConnectionRefused), "{error:?}: {:?}", chain(&*error));
    }
}

#[test]
fn every_error_of_the_system_or_of_the_work_is_a_source() {
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    let failed: Vec<Box<dyn Error>> = vec![
        Box::new(StartError::from(denied())),
        Box::new(ConnectError::Directory { path: String::from("/root"), source: denied() }),
        Box::new(ConnectError::Environment { name: "TENURE_STORE", source: Box::new(denied()) }),
        Box::new(TransactionError::from(tenure_store::TransactionError::Work(denied()))),
    ];
    for error in failed {
        assert!(is_caused_by(&*error, io::ErrorKind::PermissionDenied), "{error:?}: {:?}", chain(&*error));
    }
}

#[test]
fn errors_that_are_the_whole_story_have_no_source_and_say_something() {
    let not_leader = NotLeader { term: Term::new(3), reason: Reason::Lapsed };
    let failed: Vec<Box<dyn Error>> = vec![
        Box::new(StartError::from(bad_name())),
        Box::new(StartError::NoRuntime),
        Box::new(StartError::DriverDied),
        Box::new(StartError::NodeIdTaken { node: NodeId::new("a").unwrap() }),
        Box::new(ConnectError::NoStateDirectory),
        Box::new(ElectionError::Ended),
        Box::new(ElectionError::Closed(Ending::Closed)),
        Box::new(LeadError::<String>::CutOff),
        // What caused the work's own error is asked of that error.
        Box::new(LeadError::Work(String::from("out of paper"))),
        Box::new(not_leader),
        Box::new(TransferError::from(not_leader)),
        Box::new(TransferError::from(bad_name())),
        Box::new(PartitionsError::from(bad_name())),
        Box::new(SuperviseError::from(bad_name())),
        Box::new(SuperviseError::NoChildren),
        Box::new(StoreError::SessionLost),
    ];
    for error in failed {
        assert!(error.source().is_none() && !error.to_string().is_empty(), "{error:?}: {:?}", chain(&*error));
    }
}

#[tokio::test]
async fn a_start_that_fails_keeps_the_error_of_the_store() {
    let wrapped = Wrapped::new(memory());
    wrapped.set("open", Manner::Refuses);
    let starting = brief("a").start_timeout(Duration::from_secs(3)).start(wrapped.store());
    let error = soon(starting).await.unwrap_err();
    let source = error.source().and_then(|source| source.downcast_ref());
    assert!(matches!(source, Some(StoreError::Unavailable(_))), "{:?}", chain(&error));
    assert_eq!(chain(&error).last().map(String::as_str), Some("told to refuse"));

    wrapped.set("open", Manner::Misconfigured);
    let error = soon(brief("a").start(wrapped.store())).await.unwrap_err();
    let source = error.source().and_then(|source| source.downcast_ref());
    assert!(matches!(source, Some(StoreError::Misconfigured(_))), "{:?}", chain(&error));
}

#[tokio::test]
async fn a_url_that_a_store_refuses_is_among_the_causes() {
    let Err(error) = tenure::connect("sqlite:a.db?history=many").await else { panic!("it is accepted") };
    assert!(matches!(error, ConnectError::Url(_)), "{error:?}");
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}/missing/a.db", directory.path().display());
    let Err(error) = tenure::connect(url).await else { panic!("it is accepted") };
    assert!(matches!(error, ConnectError::Store(_)) && error.source().is_some(), "{:?}", chain(&error));
}
