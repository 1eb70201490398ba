//! A process that is stopped inside a transaction keeps the write lock: it is named, with what to do.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use futures_util::{FutureExt, StreamExt};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};
use tenure_sqlite::{is_held_by_stopped, rusqlite};
use tenure_store::{Store, StoreError};
use tenure_testkit::patience::until;

use crate::common::{claiming, open, place};

/// The database of the writer; also what makes this test one.
const DATABASE: &str = "WRITER_DATABASE";

/// Not a test of its own: what the others start. It stops itself inside a transaction, and once it was continued stays
/// there.
#[test]
fn plays_a_writer_that_stops_inside_its_transaction() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE").unwrap();
    connection.execute_batch("CREATE TABLE notes (x)").unwrap();
    kill_process(getpid(), Signal::STOP).unwrap();
    loop {
        std::thread::park();
    }
}

/// Killed when dropped.
struct Writer(Child);

impl Writer {
    fn start(database: &Path) -> Self {
        let (_, module) = module_path!().split_once("::").unwrap();
        let test = format!("{module}::plays_a_writer_that_stops_inside_its_transaction");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &test, "--quiet"])
            .env(DATABASE, database)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let writer = Self(child);
        let stopped = waitid(WaitId::Pid(writer.pid()), WaitIdOptions::STOPPED).unwrap();
        assert!(stopped.is_some_and(|status| status.stopped()), "it stops itself");
        writer
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap()
    }

    fn continue_it(&self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
        let continued = waitid(WaitId::Pid(self.pid()), WaitIdOptions::CONTINUED).unwrap();
        assert!(continued.is_some());
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn whoever_waits_for_the_lock_of_a_stopped_process_is_told_which_and_what_to_do() {
    let place = place();
    let store = place.store().await;
    let node = open(&store, 1).await;
    let writer = Writer::start(&place.path);
    let Err(error @ StoreError::Unavailable(_)) = store.renew(node, 2, 1).await else {
        panic!("the write lock is held")
    };
    let (problem, pid) = (error.to_string(), writer.0.id());
    assert!(problem.contains(&format!("process {pid} (")), "{problem}");
    assert!(problem.contains("holds its write lock and is stopped"), "{problem}");
    assert!(problem.contains(&format!("`kill -KILL {pid}`")), "{problem}");

    writer.continue_it();
    let Err(error) = store.renew(node, 3, 1).await else { panic!("the write lock is held") };
    let problem = error.to_string();
    assert!(problem.contains(&format!("process {pid} (")) && !problem.contains("is stopped"), "{problem}");

    drop(writer);
    assert_eq!(store.renew(node, 4, 1).await.unwrap().value.previous, 1);
}

#[test]
fn a_stopped_process_is_told_from_one_that_works_and_from_one_that_holds_nothing() {
    let place = place();
    assert!(!is_held_by_stopped(&place.path, getpid()).unwrap(), "there is no database yet");
    let writer = Writer::start(&place.path);
    assert!(is_held_by_stopped(&place.path, writer.pid()).unwrap());
    assert!(!is_held_by_stopped(&place.path, getpid()).unwrap());

    let other = place.dir.path().join("other.db");
    let bystander = Writer::start(&other);
    assert!(!is_held_by_stopped(&place.path, bystander.pid()).unwrap());

    writer.continue_it();
    until("it runs", || !is_held_by_stopped(&place.path, writer.pid()).unwrap());
}

#[test]
fn a_lock_is_also_found_through_a_symbolic_link() {
    let place = place();
    let writer = Writer::start(&place.path);
    let link = place.dir.path().join("link.db");
    std::os::unix::fs::symlink(&place.path, &link).unwrap();
    assert!(is_held_by_stopped(&link, writer.pid()).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_writes_all_the_time_leaves_others_their_turn() {
    let place = place();
    let (busy, other) = (place.store().await, place.store().await);
    let (claims, renews) = (open(&busy, 1).await, open(&other, 2).await);
    let claims = futures_util::stream::iter(0_u32..)
        .map(|number| busy.claim(claiming(claims, &format!("e{number}"))).map(Result::unwrap))
        .buffer_unordered(256)
        .for_each(|_| async {});
    let renewals = async {
        for sequence in 2..12 {
            assert_eq!(other.renew(renews, sequence, 1).await.unwrap().value.previous, sequence - 1);
        }
    };
    tokio::select! {
        () = claims => panic!("there is no end of elections"),
        () = renewals => {}
    }
}
