//! What is particular to MySQL: how a procedure is called.

use std::fmt::Write;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, QueryResult, TextProtocol};
use tenure_core::Namespace;
use tenure_sql::{Database, Ears, Failure, Line, Value};
use tenure_store::{Finding, News, Setup, StoreError, StoreUrl};
use tokio::sync::Mutex;

use crate::address::Address;
use crate::connect::{Wire, connect};
use crate::error::{DEADLOCK, classify};
use crate::examination::ExaminationWords;
use crate::{news, setup};

/// How often a call is repeated that the server rolled back in favour of another.
const TRIES: u32 = 4;

/// Whoever is granted a lease does not wait until those who listen have been woken: a server that finds a sleeper busy
/// tries again only after 50 ms.
const URGENT: &str = "claim";

/// A MySQL or MariaDB database.
pub struct MySql {
    pub(crate) address: Address,
    /// A connection of the application's own transactions, while there is none.
    pub(crate) idle: Mutex<Option<Wire>>,
}

impl MySql {
    /// The database that the application's own options name: host, user, password, database and encryption. Of the URL,
    /// which names no host (`mysql:?namespace=app`), only parameters are taken. Unless the options encrypt, or the URL
    /// has an `sslmode`, connections that leave the machine are encrypted, and the server is verified.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`]: what is wrong with either.
    pub fn configured(options: &Opts, url: &StoreUrl) -> Result<Self, StoreError> {
        let address = Address::configured(options, url).map_err(StoreError::misconfigured)?.equipped()?;
        Ok(Self { address, idle: Mutex::new(None) })
    }
}

impl Database for MySql {
    type Connection = Wire;
    type Examination = ExaminationWords;
    const THREAD: &'static str = "tenure-mysql";
    const REHEARSES: bool = true;

    fn named(url: &StoreUrl) -> Result<Self, StoreError> {
        let address = Address::of(url).map_err(StoreError::misconfigured)?.equipped()?;
        Ok(Self { address, idle: Mutex::new(None) })
    }

    async fn prepare(&self, setup: Setup) -> Result<(), StoreError> {
        setup::prepare(&self.address, setup).await
    }

    async fn connect(&self) -> Result<Wire, StoreError> {
        connect(&self.address).await
    }

    /// The driver only knows when it is used.
    fn is_closed(wire: &Wire) -> bool {
        wire.connection.is_disconnected()
    }

    /// Nothing has to be: a call waits for locks no longer than a second, and for nothing else; and whatever it
    /// still does is harmless, since it is numbered.
    async fn cancel(&self, _: &mut Wire, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn call(
        &self,
        wire: &mut Wire,
        _: &str,
        function: &str,
        values: &[Value],
    ) -> Result<String, Failure> {
        let sql = calling(function, values);
        let mut tries = 1;
        let answer = loop {
            match answer(&mut wire.connection, &sql, function == URGENT).await {
                Err(Error::Server(refused)) if refused.code == DEADLOCK && tries < TRIES => tries += 1,
                answer => break answer,
            }
        };
        let nothing =
            || StoreError::misconfigured("Tenure's procedures are not ours: one has answered nothing");
        answer.map_err(classify)?.ok_or_else(|| Failure { error: nothing(), answered: true })
    }

    async fn settle(&self, wire: &mut Wire) {
        settle(&mut wire.connection).await;
    }

    fn news(&self) -> News {
        News::Push
    }

    fn findings(&self, seen: ExaminationWords) -> Vec<Finding> {
        seen.findings()
    }

    /// A connection that sleeps in the server cannot be called over.
    async fn hear(&self, namespace: &Namespace, ears: &Ears, _: &Line<Self>) -> Result<(), StoreError> {
        news::hear(&self.address, namespace, ears).await
    }
}

/// The statement that calls a procedure. A text is written in hexadecimal: that is the same under every
/// `sql_mode`, and nothing in it can be taken for anything else; and one round trip is enough, as nothing is
/// prepared.
pub(crate) fn calling(function: &str, values: &[Value]) -> String {
    let mut sql = format!("CALL tenure_{function}(");
    for (index, value) in values.iter().enumerate() {
        sql.push_str(if index == 0 { "" } else { ", " });
        // A string can always be written to.
        let _ = match value {
            Value::Text(None) | Value::Number(None) => write!(sql, "NULL"),
            Value::Text(Some(text)) => {
                sql.push_str("_utf8mb4 x'");
                text.bytes().try_for_each(|byte| write!(sql, "{byte:02x}")).and_then(|()| write!(sql, "'"))
            }
            Value::Number(Some(number)) => write!(sql, "{number}"),
            Value::Small(number) => write!(sql, "{number}"),
            Value::Flag(flag) => write!(sql, "{}", u8::from(*flag)),
        };
    }
    sql.push(')');
    sql
}

/// All that a procedure answers: sets of lines of one column.
pub(crate) async fn answers(connection: &mut Conn, sql: &str) -> Result<Vec<Vec<String>>, Error> {
    rest(connection.query_iter(sql).await?).await
}

async fn rest(mut result: QueryResult<'_, '_, TextProtocol>) -> Result<Vec<Vec<String>>, Error> {
    let mut sets = Vec::new();
    while !result.is_empty() {
        let lines = result.try_collect::<Option<String>>().await?;
        sets.push(lines.into_iter().map(|line| line.ok().flatten().unwrap_or_default()).collect());
    }
    // For the driver, a result that ends with an error is empty: it keeps the error, and reports it here or to the next
    // statement of the connection.
    result.drop_result().await?;
    Ok(sets)
}

/// What a procedure answers, as one JSON object: either its first line is one, or that names the store, and the
/// objects of a list follow, in one set or more.
///
/// A procedure that answers with an object has committed before, and only wakes listeners up after that: whether that
/// succeeds, or is interrupted together with the connection, changes nothing about the answer. If the call is urgent,
/// its caller does not wait for it either, and the next call reads what is left.
async fn answer(connection: &mut Conn, sql: &str, urgent: bool) -> Result<Option<String>, Error> {
    settle(connection).await;
    let mut result = connection.query_iter(sql).await?;
    let first = result.next().await?.and_then(|mut row| row.take_opt::<Option<String>, _>(0)?.ok()?);
    match first {
        Some(object) if urgent => Ok(Some(object)),
        Some(object) if object.starts_with('{') => {
            let _ = result.drop_result().await;
            Ok(Some(object))
        }
        Some(store) => Ok(Some(listed(store, rest(result).await?))),
        None => rest(result).await.map(|_| None),
    }
}

/// Reads what is left of a call that has its answer. A connection that was lost fails the next call too.
async fn settle(connection: &mut Conn) {
    let _ = QueryResult::<TextProtocol>::new(connection).drop_result().await;
}

fn listed(store: String, sets: Vec<Vec<String>>) -> String {
    let (store, list) = (serde_json::Value::String(store), sets.concat());
    format!("{{\"store\": {store}, \"list\": [{}]}}", list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_value_can_be_taken_for_anything_else() {
        let values = [
            Value::Text(Some(String::from("it's \\ 日"))),
            Value::Text(None),
            Value::Number(Some(-5)),
            Value::Number(None),
            Value::Small(7),
            Value::Flag(true),
        ];
        assert_eq!(
            calling("open", &values),
            "CALL tenure_open(_utf8mb4 x'69742773205c20e697a5', NULL, -5, NULL, 7, 1)"
        );
        assert_eq!(
            calling("examine", &[Value::Text(Some(String::new()))]),
            "CALL tenure_examine(_utf8mb4 x'')"
        );
    }

    #[test]
    fn a_list_follows_its_store() {
        let set = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
        let listed = |sets| super::listed(String::from("a b"), sets);
        assert_eq!(listed(vec![set(&["{}", "{}"])]), "{\"store\": \"a b\", \"list\": [{}, {}]}");
        assert_eq!(listed(vec![set(&[])]), "{\"store\": \"a b\", \"list\": []}");
        let sets = vec![set(&["{}"]), set(&[]), set(&["[]"])];
        assert_eq!(listed(sets), "{\"store\": \"a b\", \"list\": [{}, []]}");
    }
}
