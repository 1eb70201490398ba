//! The Rust of the documents. Each block stands in a source that is compiled, word for word: in this one, or in an
//! example. What needs no server is also run.
#![allow(dead_code, reason = "some of it is only compiled")]

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tenure::{Child, ChildSpec, Election, Leadership, Node, Store, StoreUrl};
use tenure_http::leader_only::{LeaderOnlyLayer, Mode, Rules};

use super::book::{Kind, documents, root};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

async fn step(_term: tenure::Term) -> Result<(), std::io::Error> {
    tokio::task::yield_now().await;
    Ok(())
}

async fn by_hand(election: &Election) -> Outcome<()> {
    let leadership = election.elected().await?; // stands, and waits
    let lost = leadership.cancellation(); // cancelled on loss
    while let Ok(term) = leadership.check() {
        tokio::select! {
            done = step(term) => done?,
            () = lost.cancelled() => break,
        }
    }
    leadership.resign().await?; // says that your work has stopped, and frees the lease
    Ok(())
}

async fn a_transaction(leadership: &Leadership) -> Outcome<i64> {
    let term = i64::try_from(leadership.term().number())?;
    let pages = leadership
        .transaction(move |tx| {
            tx.execute("INSERT INTO pages (term, body) VALUES (?1, ?2)", (term, "hello"))?;
            tx.query_row("SELECT count(*) FROM pages", (), |row| row.get::<_, i64>(0))
        })
        .await?;
    Ok(pages)
}

async fn append(leadership: &tenure::Leadership) -> Result<i64, Box<dyn std::error::Error>> {
    let term = i64::try_from(leadership.term().number())?;
    let pages = leadership
        .transaction(move |tx| {
            tx.execute("CREATE TABLE IF NOT EXISTS pages (term INTEGER, body TEXT)", ())?;
            tx.execute("INSERT INTO pages (term, body) VALUES (?1, ?2)", (term, "hello"))?;
            tx.query_row("SELECT count(*) FROM pages", (), |row| row.get::<_, i64>(0))
        })
        .await?;
    Ok(pages)
}

fn leader_only(election: &Election) -> Router {
    async fn list() -> &'static str {
        "none"
    }
    async fn order() -> &'static str {
        "done"
    }
    let leader_only = LeaderOnlyLayer::new(election.gate()).only(Rules::writes()).elsewhere(Mode::Redirect);
    let app = Router::new().route("/orders", get(list).post(order)).layer(leader_only);
    app.with_state(())
}

async fn with_a_probe(store: Arc<dyn Store>) -> Outcome<Node> {
    let node = tenure::Node::builder("worker-1")
        .health(|| async {
            true /* ask your application whether it is well */
        })
        .start(store)
        .await?;
    Ok(node)
}

mod register {
    use tenure::{Fence, Fenced, Term};

    struct Register {
        fence: Fence,
        value: String,
    }

    impl Register {
        /// `highest` as it was stored beside the value.
        fn resume(highest: Term, value: String) -> Self {
            Self { fence: Fence::resume(highest), value }
        }

        fn write(&mut self, term: Term, value: String) -> Result<(), Fenced> {
            self.fence.admit(term)?;
            self.value = value;
            Ok(()) // now store `self.fence.highest()` and the value, in one transaction
        }
    }

    #[test]
    fn a_register_refuses_lower_terms() {
        let mut register = Register::resume(Term::new(4), "old".to_owned());
        assert!(register.write(Term::new(3), "late".to_owned()).is_err());
        assert!(register.write(Term::new(5), "new".to_owned()).is_ok());
        assert_eq!((register.value.as_str(), register.fence.highest()), ("new", Term::new(5)));
    }
}

mod division {
    use super::{Arc, Outcome, Store};

    async fn step(_number: u32, _term: tenure::Term) -> Result<(), std::io::Error> {
        tokio::task::yield_now().await;
        Ok(())
    }

    pub async fn works(store: Arc<dyn Store>) -> Outcome<()> {
        let node = tenure::Node::builder("worker-1").start(store).await?;
        node.partitions("billing/invoices")?
            .process_each(async |partition: tenure::Partition| {
                while let Ok(term) = partition.check() {
                    step(partition.number(), term).await?; // what is written to refuses lower terms
                }
                Ok::<_, std::io::Error>(())
            })
            .await;
        Ok(())
    }

    pub async fn divides(node: &tenure::Node) -> Outcome<()> {
        node.election("coordinator")?.coordinate().await?;
        Ok(())
    }

    pub async fn arranges(store: Arc<dyn Store>) -> Outcome<()> {
        tenure::TaskLists::new(store)?.create("billing/invoices", tenure::TaskList::new(64)).await?;
        Ok(())
    }
}

mod supervision {
    use super::{Child, ChildSpec, Duration, Election, Outcome};

    async fn watch_health(child: Child) -> Result<(), std::io::Error> {
        child.ready();
        child.told_to_stop().await;
        Ok(())
    }

    async fn poll_once(_term: tenure::Term) -> Result<(), std::io::Error> {
        tokio::task::yield_now().await;
        Ok(())
    }

    pub fn supervised(election: &Election) -> Outcome<tenure::Supervisor> {
        let supervisor = election
            .supervise()
            .with(ChildSpec::new("health", watch_health).start_within(Duration::from_secs(2)))
            .child("poller", poll)
            .start()?;

        async fn poll(child: Child) -> Result<(), std::io::Error> {
            let told = child.cancellation();
            while let Ok(term) = child.check() {
                tokio::select! {
                    () = told.cancelled() => break,
                    polled = poll_once(term) => polled?,
                }
            }
            Ok(())
        }
        Ok(supervisor)
    }
}

async fn on_mysql(leadership: &Leadership) -> Outcome<()> {
    use tenure::mysql::mysql_async::prelude::Queryable;

    leadership
        .mysql_transaction(async |tx| tx.query_drop("INSERT INTO pages (body) VALUES ('hello')").await)
        .await?;
    Ok(())
}

async fn on_postgres(leadership: &Leadership) -> Outcome<u64> {
    let rows = leadership
        .postgres_transaction(async |tx| tx.execute("INSERT INTO pages (body) VALUES ('hello')", &[]).await)
        .await?;
    Ok(rows)
}

fn cryptography() {
    rustls::crypto::aws_lc_rs::default_provider().install_default().expect("nothing was installed before");
}

async fn on_sqlite() -> Outcome<Arc<dyn Store>> {
    let store = tenure::connect("sqlite:/var/lib/app/tenure.db").await?;
    Ok(store)
}

async fn on_zookeeper() -> Outcome<Node> {
    use tenure::zookeeper::{ZooKeeperStore, client::Client};

    let client =
        Client::connector().with_session_timeout(Duration::from_secs(10)).connect("zk1,zk2,zk3").await?;
    let store = ZooKeeperStore::with_client(client.clone(), &StoreUrl::parse("zk:///tenure")?).await?;
    let node = Node::builder("worker-1").ttl(Duration::from_secs(10)).start(Arc::new(store)).await?;
    Ok(node)
}

/// Without what only looks: a formatter breaks lines elsewhere when they are indented.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

#[test]
fn every_block_of_rust_stands_in_a_source_that_is_compiled() {
    let mut sources = vec![squeezed(include_str!("snippets.rs"))];
    for directory in ["crates/tenure/examples", "crates/tenure-http/examples"] {
        for entry in std::fs::read_dir(root().join(directory)).unwrap() {
            sources.push(squeezed(&std::fs::read_to_string(entry.unwrap().path()).unwrap()));
        }
    }
    let blocks = documents().into_iter().flat_map(|document| document.blocks);
    for block in blocks.filter(|block| block.kind() == Some(Kind::Rust)) {
        let wanted = squeezed(&block.text);
        let found = sources.iter().any(|source| source.contains(&wanted));
        assert!(
            found,
            "{} is compiled nowhere: have it in tests/docs/snippets.rs, word for word",
            block.place
        );
    }
}

#[tokio::test]
async fn work_by_hand_ends_with_its_node_and_another_takes_over() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("tenure.db").display());
    let node = with_a_probe(tenure::connect(&url).await.unwrap()).await.unwrap();
    let election = node.election("reports").unwrap();
    let work = tokio::spawn(async move { by_hand(&election).await.map_err(|error| error.to_string()) });
    let other = Node::builder("worker-2").ttl(Duration::from_secs(60));
    let other = other.start(tenure::connect(&url).await.unwrap()).await.unwrap();
    let next = other.election("reports").unwrap();
    let led = async || next.leader().await.unwrap().is_some();
    tenure_testkit::stage::until(led).await;
    let (leadership, ()) = tokio::join!(next.elected(), node.close());
    // The work is over; that its term cannot be resigned any more is all that it may complain of.
    if let Err(problem) = work.await.unwrap() {
        assert!(problem.contains("is over"), "{problem}");
    }
    let leadership = leadership.unwrap();
    assert_eq!(append(&leadership).await.unwrap(), 1);
    assert_eq!(a_transaction(&leadership).await.unwrap(), 2);
}
