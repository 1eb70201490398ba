//! What the programs have executed, in the order in which they did. All three write here, so it sees two
//! leaders at once, and every request that came twice.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use std::sync::Arc;

#[derive(Default)]
pub struct Ledger(Mutex<Book>);

#[derive(Default)]
struct Book {
    highest: u64,
    executed: HashMap<String, u32>,
    leaders: HashMap<u64, usize>,
    violations: Vec<String>,
}

impl Ledger {
    fn execute(&self, program: usize, request: String, term: Option<u64>) {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(term) = term else {
            return book.violations.push(format!("{request} came to program {program} without a term"));
        };
        if term < book.highest {
            let highest = book.highest;
            book.violations.push(format!("{request} executed under term {term}, after term {highest}"));
        }
        book.highest = book.highest.max(term);
        let leader = *book.leaders.entry(term).or_insert(program);
        if leader != program {
            book.violations.push(format!("{request}: programs {leader} and {program} led under term {term}"));
        }
        let times = book.executed.entry(request.clone()).or_default();
        *times += 1;
        if *times > 1 {
            let times = *times;
            book.violations.push(format!("{request} was executed {times} times"));
        }
    }

    pub fn was_executed(&self, request: &str) -> bool {
        self.0.lock().unwrap().executed.contains_key(request)
    }

    pub fn violations(&self) -> Vec<String> {
        self.0.lock().unwrap().violations.clone()
    }
}

/// A program beside a node. It says which one it is.
pub async fn program(number: usize, ledger: Arc<Ledger>) -> String {
    let write = async move |State(ledger): State<Arc<Ledger>>, headers: HeaderMap, body: String| {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let request = header("request-id").unwrap_or_default().to_owned();
        if body != request {
            return (StatusCode::BAD_REQUEST, String::from("the body was lost"));
        }
        ledger.execute(number, request, header("tenure-term").and_then(|term| term.parse().ok()));
        (StatusCode::OK, format!("program {number}"))
    };
    let app = Router::new()
        .route("/orders", get(async move || format!("program {number}")).post(write))
        .with_state(ledger);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    origin
}
