//! The store URL: where the database is.

use std::fmt;
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder, SslOpts};
use percent_encoding::percent_decode_str;
use tenure_sql::{Encryption, is_local};
use tenure_store::{StoreError, StoreUrl, UrlError};

const PORT: u16 = 3306;
const PATIENCE: Duration = Duration::from_secs(5);
/// Said to the server for every connection. Locks are waited for no longer than a request is: what was given
/// up holds nothing for long. A connection may be idle for as long as its node lives. And what is told of many
/// partitions is not cut off in the middle.
const SETTINGS: &str = "SET SESSION autocommit = 1, completion_type = NO_CHAIN, innodb_lock_wait_timeout = 1, \
                        lock_wait_timeout = 2, wait_timeout = 604800, group_concat_max_len = 16777216";

/// A database, and how to come there.
#[derive(Clone)]
pub(crate) struct Address {
    /// In the order in which they are tried.
    pub hosts: Vec<(String, u16)>,
    pub database: String,
    pub patience: Duration,
    pub encryption: Encryption,
    user: String,
    password: Option<String>,
    tls: Option<SslOpts>,
}

/// What may stand in the URL beside what every store understands.
const KNOWN: [&str; 3] = ["sslmode", "sslrootcert", "connect_timeout"];

impl Address {
    pub(crate) fn of(url: &StoreUrl) -> Result<Self, UrlError> {
        url.only(&KNOWN)?;
        let patience = url.parameter("connect_timeout").map_or(Ok(PATIENCE), seconds)?;
        let roots = url.parameter("sslrootcert").map(decoded);
        let rest = url.rest.strip_prefix("//").ok_or_else(|| wrong("it begins with `//`"))?;
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        // The last one: a password may hold one that was not encoded.
        let (person, hosts) = place.rsplit_once('@').unwrap_or(("", place));
        let (user, password) =
            person.split_once(':').map_or((person, None), |(user, pass)| (user, Some(pass)));
        if database.is_empty() {
            return Err(wrong("the database is missing"));
        }
        if user.is_empty() {
            return Err(wrong("the user is missing"));
        }
        let hosts = hosts.split(',').map(host).collect::<Result<Vec<_>, _>>()?;
        let local = hosts.iter().all(|(host, _)| is_local(host));
        Ok(Self {
            encryption: Encryption::asked(url.parameter("sslmode"), roots.as_deref(), local)?,
            hosts,
            database: decoded(database),
            patience,
            user: decoded(user),
            password: password.map(decoded),
            tls: None,
        })
    }

    /// The database that the application's own options name; only Tenure's parameters are taken from the URL.
    pub(crate) fn configured(options: &Opts, url: &StoreUrl) -> Result<Self, UrlError> {
        url.only(&KNOWN)?;
        if !url.rest.is_empty() {
            return Err(wrong("the options name the host; write `mysql:?namespace=app`"));
        }
        if options.socket().is_some() {
            return Err(wrong("the options name a socket; name a host"));
        }
        let hosts = vec![(options.ip_or_hostname().to_owned(), options.tcp_port())];
        let mode = url.parameter("sslmode").or_else(|| options.ssl_opts().map(|_| "verify-full"));
        let roots = url.parameter("sslrootcert").map(decoded);
        let encryption = Encryption::asked(mode, roots.as_deref(), is_local(&hosts[0].0))?;
        Ok(Self {
            tls: options.ssl_opts().filter(|_| roots.is_none() && !encryption.is_off()).cloned(),
            encryption,
            hosts,
            database: options.db_name().ok_or_else(|| wrong("the database is missing"))?.to_owned(),
            patience: url.parameter("connect_timeout").map_or(Ok(PATIENCE), seconds)?,
            user: options.user().ok_or_else(|| wrong("the user is missing"))?.to_owned(),
            password: options.pass().map(str::to_owned),
        })
    }

    /// The same with what it needs of this machine: whom it trusts is read now, unless the application has said it.
    pub(crate) fn equipped(mut self) -> Result<Self, StoreError> {
        if self.tls.is_some() {
            return Ok(self);
        }
        self.tls = self.encryption.trusted()?.map(|trusted| {
            let roots = trusted.certificates().iter().map(|root| root.to_vec().into()).collect();
            SslOpts::default().with_root_certs(roots).with_disable_built_in_roots(true)
        });
        Ok(self)
    }

    /// Whether connections are to be encrypted, if the server can.
    pub(crate) fn encrypts(&self) -> bool {
        self.tls.is_some()
    }

    /// What the driver needs to know of the host of this index.
    pub(crate) fn options(&self, (host, port): &(String, u16), encrypted: bool) -> Opts {
        OptsBuilder::default()
            .ip_or_hostname(host.clone())
            .tcp_port(*port)
            .user(Some(self.user.clone()))
            .pass(self.password.clone())
            .db_name(Some(self.database.clone()))
            .ssl_opts(self.tls.clone().filter(|_| encrypted))
            .prefer_socket(false)
            .tcp_keepalive(Some(Duration::from_secs(10)))
            // Otherwise the driver asks, for every connection.
            .max_allowed_packet(Some(16 * 1024 * 1024))
            .wait_timeout(Some(604_800))
            .setup(vec![SETTINGS])
            .into()
    }

    /// Where it is, for people.
    pub(crate) fn places(&self) -> String {
        self.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect::<Vec<_>>().join(", ")
    }
}

/// Without the password.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.places(), self.database)
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// `name`, `name:port`, `[::1]` or `[::1]:port`.
fn host(text: &str) -> Result<(String, u16), UrlError> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            // It is not quoted: it is a password if somebody forgot the host.
            (name, port.parse().map_err(|_| wrong("the port is not a number"))?)
        }
        _ => (text, PORT),
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    if name.is_empty() {
        return Err(wrong("the host is missing"));
    }
    Ok((name.to_owned(), port))
}

fn seconds(value: &str) -> Result<Duration, UrlError> {
    let problem = "it is a number of seconds, at least 1";
    let seconds = value.parse().ok().filter(|&seconds| seconds > 0).map(Duration::from_secs);
    seconds.ok_or_else(|| UrlError::parameter("connect_timeout", value, problem, "connect_timeout=5"))
}

fn wrong(problem: &str) -> UrlError {
    UrlError::Rest { scheme: "mysql", problem: problem.to_owned(), example: "mysql://user@host/database" }
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
            "mysql://user:pass@host:3306/name?ssl-mode=verify_identity&ssl-ca=/a/b",
            "mysql://a:1,b:2/name?prefix=x_&password-file=/a",
            "mysql://[::1]/n",
        ];
        tenure_testkit::fuzz::fuzz_text(&samples, |url| {
            let _ = StoreUrl::parse(url).map(|url| Address::of(&url));
        });
    }

    #[test]
    fn a_url_is_taken_apart() {
        let address = address("mysql://me:s%40cret@h1:3307,h2,[::1]:3308/my%20db?connect_timeout=3").unwrap();
        let hosts = [("h1", 3307), ("h2", PORT), ("::1", 3308)].map(|(host, port)| (host.to_owned(), port));
        assert_eq!(address.hosts, hosts);
        assert_eq!((address.user.as_str(), address.password.as_deref()), ("me", Some("s@cret")));
        assert_eq!((address.database.as_str(), address.patience), ("my db", Duration::from_secs(3)));
        assert!(!format!("{address:?}").contains("cret"));
    }

    #[test]
    fn options_of_the_application_are_judged_as_a_url_is() {
        let configured = |options: OptsBuilder, url: &str| {
            Address::configured(&options.into(), &StoreUrl::parse(url).unwrap())
        };
        let options = OptsBuilder::default().ip_or_hostname("db.example").tcp_port(3307);
        let options = options.user(Some("me")).pass(Some("s@cret")).db_name(Some("app"));
        let address = configured(options.clone(), "mysql:?connect_timeout=3").unwrap();
        assert_eq!(address.hosts, [(String::from("db.example"), 3307)]);
        assert_eq!((address.user.as_str(), address.password.as_deref()), ("me", Some("s@cret")));
        assert!(!address.encryption.is_optional() && !address.encryption.is_off(), "it leaves the machine");
        let own = options.clone().ssl_opts(Some(SslOpts::default()));
        assert!(configured(own.clone(), "mysql:").unwrap().encrypts(), "as the application does");
        assert!(!configured(own, "mysql:?sslmode=disable").unwrap().encrypts());
        let message = |options: OptsBuilder, url: &str| configured(options, url).unwrap_err().to_string();
        assert!(message(options.clone(), "mysql://me@h1/db").contains("the options name the host"));
        assert!(message(options.clone().db_name(None::<String>), "mysql:").contains("database is missing"));
        assert!(message(options.clone().user(None::<String>), "mysql:").contains("user is missing"));
        assert!(message(options.socket(Some("/run/x.sock")), "mysql:").contains("name a host"));
    }

    #[test]
    fn a_wrong_url_names_the_part_that_is_wrong() {
        let message = |url: &str| address(url).unwrap_err().to_string();
        assert!(message("mysql:me@h/db").contains("begins with `//`"));
        assert!(message("mysql://me@/db").contains("host is missing"));
        assert!(message("mysql://me@h1").contains("database is missing"));
        assert!(message("mysql://h1/db").contains("user is missing"));
        assert!(message("mysql://me@h1:port/db").contains("the port is not a number"));
        assert!(message("mysql://me@h1/db?schema=x").contains("unknown parameter `schema`"));
        assert!(message("mysql://me@h1/db?connect_timeout=0").contains("`connect_timeout=0` is wrong"));
        assert!(message("mysql://me@h1/db?sslmode=verify-ca").contains("`sslmode=verify-ca` is wrong"));
    }
}
