//! The store URL: where the database is, and in which schema.

use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tenure_sql::Encryption;
use tenure_store::{StoreError, StoreUrl, UrlError};
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

use crate::tls::{self, Tls};

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
    pub news: News,
}

/// Where changes are heard of.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// In the same place.
    Here,
    /// Past a pool, which hands connections from one transaction to the next and so cannot pass on what
    /// one of them listens to.
    There(Box<Address>),
    /// Nowhere: candidates look.
    Nowhere,
}

/// What may stand in the URL beside what every store understands: for us, and for the driver.
const OURS: [&str; 4] = ["schema", "news", "sslmode", "sslrootcert"];
const DRIVERS: [&str; 4] = ["connect_timeout", "application_name", "host", "port"];

impl Address {
    pub(crate) fn of(url: &StoreUrl) -> Result<Self, UrlError> {
        url.only(&[&OURS[..], &DRIVERS[..]].concat())?;
        let of_the_driver = |(name, _): &&(String, String)| !OURS.contains(&name.as_str());
        let parameters = url.parameters.iter().filter(of_the_driver);
        let parameters: Vec<_> = parameters.map(|(name, value)| format!("{name}={value}")).collect();
        let joint = if parameters.is_empty() { "" } else { "?" };
        let text = format!("postgres:{}{joint}{}", url.rest, parameters.join("&"));
        let config = Config::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
        Self::at(config, url)
    }

    /// The database that the application's own configuration names; only Tenure's parameters are taken from the URL.
    pub(crate) fn configured(config: Config, url: &StoreUrl) -> Result<Self, UrlError> {
        url.only(&OURS)?;
        if !url.rest.is_empty() {
            return Err(wrong("the configuration names the host; write `postgres:?schema=tenure`"));
        }
        Self::at(config, url)
    }

    fn at(mut config: Config, url: &StoreUrl) -> Result<Self, UrlError> {
        let schema = url.parameter("schema").map_or_else(|| Ok(SCHEMA.to_owned()), checked)?;
        let (mode, news) = (url.parameter("sslmode"), url.parameter("news"));
        let mode = mode.or(match config.get_ssl_mode() {
            SslMode::Disable => Some("disable"),
            SslMode::Require => Some("require"),
            // What a configuration says that says nothing.
            _ => None,
        });
        let roots = url.parameter("sslrootcert").map(|file| percent_decode_str(file).decode_utf8_lossy());
        if config.get_hosts().is_empty() {
            return Err(wrong("the host is missing"));
        }
        if config.get_dbname().is_none() {
            return Err(wrong("the database is missing"));
        }
        // Of several hosts, the one that accepts writes.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        config.tcp_user_timeout(Duration::from_secs(10)).keepalives_idle(Duration::from_secs(10));
        if config.get_application_name().is_none() {
            config.application_name("tenure");
        }
        let roots = roots.as_deref();
        let at = |mut config: Config, news: News| {
            let encryption = tls::asked(mode, roots, config.get_hosts())?;
            config.ssl_mode(tls::mode(&encryption));
            Ok::<_, UrlError>(Self { config, schema: schema.clone(), encryption, tls: None, news })
        };
        let news = match news {
            None => News::Here,
            Some("none") => News::Nowhere,
            Some(hosts) => News::There(Box::new(at(elsewhere(&config, hosts)?, News::Nowhere)?)),
        };
        at(config, news)
    }

    /// The same with what it needs of this machine: whom it trusts is read now.
    pub(crate) fn equipped(mut self) -> Result<Self, StoreError> {
        self.tls = Tls::of(&self.encryption)?;
        if let News::There(there) = self.news {
            self.news = News::There(Box::new(there.equipped()?));
        }
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

/// The same database and user, at these hosts.
fn elsewhere(config: &Config, hosts: &str) -> Result<Config, UrlError> {
    let wrong = |problem: String| {
        UrlError::parameter("news", hosts, problem, "news=db1.example:5432,db2.example:5432")
    };
    let mut there =
        Config::from_str(&format!("postgres://{hosts}")).map_err(|error| wrong(error.to_string()))?;
    if there.get_hosts().is_empty() || there.get_user().is_some() || there.get_dbname().is_some() {
        return Err(wrong(String::from("it is `none`, or hosts with their ports")));
    }
    there.target_session_attrs(config.get_target_session_attrs());
    if let Some(user) = config.get_user() {
        there.user(user);
    }
    if let Some(password) = config.get_password() {
        there.password(password);
    }
    if let Some(database) = config.get_dbname() {
        there.dbname(database);
    }
    if let Some(name) = config.get_application_name() {
        there.application_name(name);
    }
    if let Some(patience) = config.get_connect_timeout() {
        there.connect_timeout(*patience);
    }
    there.tcp_user_timeout(Duration::from_secs(10)).keepalives_idle(Duration::from_secs(10));
    Ok(there)
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
    let problem = format!(
        "it is made of lower-case letters, digits and _, begins with a letter, and has at most {LONGEST}"
    );
    Err(UrlError::parameter("schema", name, problem, "schema=tenure"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Result<Address, UrlError> {
        Address::of(&StoreUrl::parse(url).unwrap())
    }

    #[test]
    fn fuzz_whatever_a_url_says_it_is_understood_or_refused() {
        let samples = [
            "postgres://user:pass@host:5432/name?sslmode=verify-full&sslrootcert=/a/b&schema=tenure",
            "postgresql://[::1],b:6432/x?target_session_attrs=read-write",
            "postgres:///name?host=/run/pg&password-file=/a",
        ];
        tenure_testkit::fuzz::fuzz_text(&samples, |url| {
            let _ = StoreUrl::parse(url).map(|url| Address::of(&url));
        });
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
    fn news_may_come_past_a_pool() {
        let url = "postgres://me:secret@pool.example:6432/db?news=h1:5433,h2:5434&connect_timeout=3";
        let News::There(there) = address(url).unwrap().news else { panic!("it is elsewhere") };
        let config = &there.config;
        assert_eq!((config.get_hosts().len(), config.get_ports()), (2, &[5433, 5434][..]));
        assert_eq!((config.get_user(), config.get_password()), (Some("me"), Some(&b"secret"[..])));
        assert_eq!((config.get_dbname(), there.channel().as_str()), (Some("db"), "tenure_tenure"));
        assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert!(!there.encryption.is_optional(), "it is judged by its own hosts");
        assert!(matches!(address("postgres://h1/db?news=none").unwrap().news, News::Nowhere));
    }

    #[test]
    fn a_configuration_of_the_application_is_judged_as_a_url_is() {
        let configured =
            |config: &Config, url: &str| Address::configured(config.clone(), &StoreUrl::parse(url).unwrap());
        let mut config = Config::new();
        config.host("db.example").port(5433).user("me").password("s@cret").dbname("app");
        config.application_name("shop");
        let address = configured(&config, "postgres:?schema=blue").unwrap();
        assert_eq!((address.schema.as_str(), address.config.get_application_name()), ("blue", Some("shop")));
        assert_eq!(address.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!(address.config.get_ssl_mode(), SslMode::Require, "it leaves the machine");
        config.ssl_mode(SslMode::Disable);
        assert!(configured(&config, "postgres:").unwrap().encryption.is_off());
        let message = |url: &str| configured(&config, url).unwrap_err().to_string();
        assert!(message("postgres://h1/db").contains("the configuration names the host"));
        assert!(message("postgres:?connect_timeout=3").contains("unknown parameter `connect_timeout`"));
        let nowhere = Address::configured(Config::new(), &StoreUrl::parse("postgres:").unwrap());
        assert!(nowhere.unwrap_err().to_string().contains("host is missing"));
    }

    #[test]
    fn a_wrong_url_names_the_part_that_is_wrong() {
        let message = |url: &str| address(url).unwrap_err().to_string();
        assert!(message("postgres:///db").contains("host is missing"));
        assert!(message("postgres://me@h1").contains("database is missing"));
        assert!(message("postgres://h1/db?schema=Robert'); DROP").contains("`schema="));
        assert!(message("postgres://h1/db?schema=pg_catalog").contains("is wrong"));
        assert!(message("postgres://h1/db?shema=x").contains("unknown parameter `shema`"));
        assert!(message("postgres://h1/db?news=you@h1").contains("`none`, or hosts with their ports"));
        assert!(message("postgres://h1/db?news=h1:port").contains("`news=h1:port` is wrong"));
        assert!(message("postgres://h1:port/db").contains("wrong after `postgres:`"));
        assert!(message("postgres://h1/db?sslmode=verify-ca").contains("`sslmode=verify-ca` is wrong"));
    }
}
