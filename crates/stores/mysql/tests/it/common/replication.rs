//! Replication, in the syntax of MariaDB or of MySQL.

use tenure_testkit::server::MariaDb;

/// Settings that a primary and its replica need.
pub fn settings() -> &'static [&'static str] {
    if MariaDb::is_mysql() { &["gtid-mode=on", "enforce-gtid-consistency=on"] } else { &[] }
}

/// Statements that make a server replicate the one at this port.
pub fn follow(port: u16) -> [String; 2] {
    let (primary, start) = if MariaDb::is_mysql() {
        let primary = "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, \
                       SOURCE_USER = 'keeper', SOURCE_PASSWORD = 'secret', SOURCE_AUTO_POSITION = 1, \
                       GET_SOURCE_PUBLIC_KEY = 1, SOURCE_SSL = 0";
        (primary, "START REPLICA")
    } else {
        let primary = "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'keeper', \
                       MASTER_PASSWORD = 'secret', MASTER_USE_GTID = slave_pos";
        (primary, "START SLAVE")
    };
    [primary.replace("{port}", &port.to_string()), start.to_owned()]
}

/// Asks a primary for its position in the binary log.
pub fn position() -> &'static str {
    if MariaDb::is_mysql() { "SELECT @@GLOBAL.gtid_executed" } else { "SELECT @@GLOBAL.gtid_binlog_pos" }
}

/// Waits until a replica has reached this position. The answer is 0.
pub fn wait(position: &str) -> String {
    let function = if MariaDb::is_mysql() { "WAIT_FOR_EXECUTED_GTID_SET" } else { "MASTER_GTID_WAIT" };
    format!("SELECT {function}('{position}', 60)")
}

/// Statements that make a replica a primary.
pub fn promote() -> [&'static str; 3] {
    let [stop, forget] = if MariaDb::is_mysql() {
        ["STOP REPLICA", "RESET REPLICA ALL"]
    } else {
        ["STOP SLAVE", "RESET SLAVE ALL"]
    };
    [stop, forget, "SET GLOBAL read_only = 0"]
}
