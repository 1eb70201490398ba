//! The store URL: where the database is, and in which schema.

use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tenure_store::{StoreError, StoreUrl, UrlError};
use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;

use crate::tls::{Encryption, Tls};

/// Where Tenure's tables are, unless the URL says otherwise.
const SCHEMA: &str = "tenure";
/// Longest name that leaves room for what is made of it; PostgreSQL cuts off names at 63 bytes.
const LONGEST: usize = 48;

/// A database, and Tenure's place in it.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub config: Config,
    pub schema: String,
    pub encryption: Encryption,
    /// What encrypts, if anything does.
    pub tls: Option<Tls>,
}

/// What may stand in the URL beside what every store understands.
const KNOWN: [&str; 7] =
    ["schema", "sslmode", "sslrootcert", "connect_timeout", "application_name", "host", "port"];

impl Address {
    pub(crate) fn of(url: &StoreUrl) -> Result<Self, UrlError> {
        url.only(&KNOWN)?;
        let (mut schema, mut parameters) = (SCHEMA.to_owned(), Vec::new());
        let (mut mode, mut roots) = (None, None);
        for (name, value) in &url.parameters {
            match name.as_str() {
                "schema" => schema = checked(value)?,
                "sslmode" => mode = Some(value.as_str()),
                "sslrootcert" => roots = Some(percent_decode_str(value).decode_utf8_lossy()),
                _ => parameters.push(format!("{name}={value}")),
            }
        }
        let joint = if parameters.is_empty() { "" } else { "?" };
        let text = format!("postgres:{}{joint}{}", url.rest, parameters.join("&"));
        let mut config = Config::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
        if config.get_hosts().is_empty() {
            return Err(wrong("the host is missing"));
        }
        if config.get_dbname().is_none() {
            return Err(wrong("the database is missing"));
        }
        let encryption = Encryption::asked(mode, roots.as_deref(), config.get_hosts())?;
        config.ssl_mode(encryption.mode());
        // Of several hosts, the one that accepts writes.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        config.tcp_user_timeout(Duration::from_secs(10)).keepalives_idle(Duration::from_secs(10));
        if config.get_application_name().is_none() {
            config.application_name("tenure");
        }
        Ok(Self { config, schema, encryption, tls: None })
    }

    /// The same with what it needs of this machine: whom it trusts is read now.
    pub(crate) fn equipped(mut self) -> Result<Self, StoreError> {
        self.tls = self.encryption.connector()?;
        Ok(self)
    }

    /// The schema as an identifier. It was checked, so quoting is only for words that SQL knows.
    pub(crate) fn quoted(&self) -> String {
        format!("\"{}\"", self.schema)
    }

    /// Where news of this schema is told.
    pub(crate) fn channel(&self) -> String {
        format!("tenure_{}", self.schema)
    }
}

fn wrong(problem: &str) -> UrlError {
    UrlError::Rest {
        scheme: "postgres",
        problem: problem.to_owned(),
        example: "postgres://user@host/database?schema=tenure",
    }
}

fn checked(name: &str) -> Result<String, UrlError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if starts_well && name.len() <= LONGEST && name.chars().all(plain) && !name.starts_with("pg_") {
        return Ok(name.to_owned());
    }
    Err(UrlError::BadParameter {
        name: "schema",
        value: name.to_owned(),
        problem: format!(
            "it is made of lower-case letters, digits and _, begins with a letter, and has at most {LONGEST}"
        ),
        example: "schema=tenure",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Result<Address, UrlError> {
        Address::of(&StoreUrl::parse(url).unwrap())
    }

    #[test]
    fn several_hosts_mean_the_one_that_accepts_writes() {
        let address =
            address("postgres://me:secret@h1:5433,h2:5434/db?schema=blue&connect_timeout=3").unwrap();
        assert_eq!((address.config.get_hosts().len(), address.config.get_ports()), (2, &[5433, 5434][..]));
        assert_eq!(address.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!((address.quoted().as_str(), address.channel().as_str()), ("\"blue\"", "tenure_blue"));
    }

    #[test]
    fn a_wrong_url_names_the_part_that_is_wrong() {
        let message = |url: &str| address(url).unwrap_err().to_string();
        assert!(message("postgres:///db").contains("host is missing"));
        assert!(message("postgres://me@h1").contains("database is missing"));
        assert!(message("postgres://h1/db?schema=Robert'); DROP").contains("`schema="));
        assert!(message("postgres://h1/db?schema=pg_catalog").contains("is wrong"));
        assert!(message("postgres://h1/db?shema=x").contains("unknown parameter `shema`"));
        assert!(message("postgres://h1:port/db").contains("wrong after `postgres:`"));
        assert!(message("postgres://h1/db?sslmode=verify-ca").contains("`sslmode=verify-ca` is wrong"));
    }
}
