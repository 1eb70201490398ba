//! Elections shared with Go: the znodes that go-leaderelection makes, made here by hand, since it has no package
//! to install. Its candidates are `le_` and a sequence below the election's znode, with the client's name as
//! data; they are ordered by the whole name, and whoever is first leads. An end is a znode `DONE` among them,
//! and the deletion of all candidates from the last to the first.

use crate::common::person;
use tenure::{ElectionError, Node, Reason};
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{ELECTION, calm, lead, soon, stand, start, until};
use zookeeper_client::{Acls, Client, CreateMode};

const FOLDER: &str = "/services/reports";

/// A Go service.
struct Go {
    client: Client,
}

impl Go {
    async fn connect(server: &ZooKeeper) -> Self {
        let client = person(server).await;
        let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
        client.mkdir(FOLDER, &persistent).await.unwrap();
        Self { client }
    }

    async fn offer(&self, name: &str) -> String {
        let mode = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let offer = self.client.create(&format!("{FOLDER}/le_"), name.as_bytes(), &mode).await.unwrap();
        let (_, sequence) = offer;
        format!("le_{sequence}")
    }

    /// In the order in which they lead.
    async fn candidates(&self) -> Vec<String> {
        let mut names = self.client.list_children(FOLDER).await.unwrap();
        names.sort();
        names
    }

    async fn name_of(&self, candidate: &str) -> String {
        String::from_utf8(self.client.get_data(&format!("{FOLDER}/{candidate}")).await.unwrap().0).unwrap()
    }

    async fn resign(&self, candidate: &str) {
        self.client.delete(&format!("{FOLDER}/{candidate}"), None).await.unwrap();
    }

    async fn end(&self) {
        let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
        self.client.create(&format!("{FOLDER}/DONE"), b"done", &persistent).await.unwrap();
        let mut deletes = self.client.new_multi_writer();
        for name in self.candidates().await.iter().rev().filter(|name| *name != "DONE") {
            deletes.add_delete(&format!("{FOLDER}/{name}"), None).unwrap();
        }
        deletes.commit().await.unwrap();
    }
}

async fn ours(server: &ZooKeeper, id: &str) -> Node {
    start(calm(id), &format!("{}/services?layout=go-leaderelection", server.url())).await
}

#[tokio::test]
async fn ours_stand_in_line_with_those_in_go_under_the_same_names() {
    let server = ZooKeeper::start();
    let go = Go::connect(&server).await;
    let first = go.offer("go-1").await;
    let node = ours(&server, "ours").await;
    let waits = stand(&node);
    until(async || go.candidates().await.len() == 2).await;
    let last = go.offer("go-2").await;

    let line = go.candidates().await;
    assert_eq!(line, ["le_0000000000", "le_0000000001", "le_0000000002"]);
    assert_eq!((&line[0], &line[2]), (&first, &last));
    assert_eq!(go.name_of(&line[1]).await, "ours", "with its name as data, as theirs");
    let election = node.election(ELECTION).unwrap();
    let leader = soon(election.leader()).await.unwrap().unwrap();
    assert_eq!(leader.node.as_str(), "go-1");
    let listed = soon(election.candidates()).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.node.as_str()).collect::<Vec<_>>(), ["ours", "go-2"]);

    assert!(!waits.is_finished());
    go.resign(&first).await;
    let leadership = soon(waits).await.unwrap();
    assert_eq!(go.candidates().await, line[1..], "the one in Go follows ours");
    soon(leadership.resign()).await.unwrap();
    assert_eq!(go.candidates().await, [last]);
}

#[tokio::test]
async fn an_election_that_is_ended_in_go_is_over_for_ours_too() {
    let server = ZooKeeper::start();
    let go = Go::connect(&server).await;
    let (a, b) = (ours(&server, "a").await, ours(&server, "b").await);
    let leadership = lead(&a).await;
    let follows = tokio::spawn({
        let election = b.election(ELECTION).unwrap();
        async move { election.elected().await.map(|_| ()) }
    });
    until(async || go.candidates().await.len() == 2).await;
    go.end().await;
    let reason = soon(leadership.lost()).await;
    assert!(matches!(reason, Reason::Ended | Reason::Superseded), "whichever it saw first: {reason:?}");
    drop(leadership);
    let told = soon(follows).await.unwrap();
    assert!(matches!(told, Err(ElectionError::Ended)), "{told:?}");
    let newcomer = ours(&server, "c").await;
    let refused = soon(newcomer.election(ELECTION).unwrap().elected()).await.map(|_| ());
    assert!(matches!(refused, Err(ElectionError::Ended)), "{refused:?}");
    assert_eq!(go.candidates().await, ["DONE"], "nobody stands");
}
