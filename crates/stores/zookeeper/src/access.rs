//! As whom servers are spoken to, and over what: users, certificates, and whose what is made will be.

use std::path::{Path, PathBuf};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use tenure_store::{StoreError, StoreUrl, UrlError};
use zookeeper_client::{Acls, Connector, SaslOptions, TlsOptions};

/// What of a store URL is about access.
pub(crate) const KNOWN: [&str; 6] = ["acl", "auth", "sslcert", "sslkey", "sslmode", "sslrootcert"];

#[derive(Clone, Default)]
pub(crate) struct Access {
    user: Option<User>,
    encryption: Option<Encryption>,
    /// What is made belongs to whoever made it.
    owned: bool,
}

#[derive(Clone)]
enum User {
    /// `user:password`, which goes over the wire as it is.
    Digest(String),
    /// A name and a password, which does not.
    Sasl(String, String),
}

/// Always with a look at the server's certificate and its name.
#[derive(Clone)]
struct Encryption {
    roots: PathBuf,
    /// A certificate of ours, and its key.
    identity: Option<(PathBuf, PathBuf)>,
}

impl Access {
    /// From the parameters of a URL, and the `user:password` in it.
    pub(crate) fn of(url: &StoreUrl, user: Option<String>) -> Result<Self, UrlError> {
        let parameter = |name: &str| url.parameter(name);
        let user = match (user, parameter("auth")) {
            (None, None) => None,
            (Some(user), None | Some("digest")) => Some(User::Digest(user)),
            (Some(user), Some("sasl")) => {
                let (name, password) = user.split_once(':').unwrap_or((&user, ""));
                Some(User::Sasl(name.to_owned(), password.to_owned()))
            }
            (_, Some(value)) => {
                return Err(UrlError::BadParameter {
                    name: "auth",
                    value: value.to_owned(),
                    problem: String::from("it is digest or sasl, for the user and password in the URL"),
                    example: "zk://user:password@h1/tenure?auth=sasl",
                });
            }
        };
        let encryption = Encryption::of(parameter)?;
        let known = user.is_some() || encryption.as_ref().is_some_and(|one| one.identity.is_some());
        let owned = match parameter("acl") {
            None => known,
            Some("creator") => true,
            Some("anyone") => false,
            Some(value) => {
                return Err(UrlError::BadParameter {
                    name: "acl",
                    value: value.to_owned(),
                    problem: String::from("it is creator or anyone: who may change what Tenure makes"),
                    example: "acl=creator",
                });
            }
        };
        Ok(Self { user, encryption, owned })
    }

    /// What is made here belongs to whoever made it, if there is anybody to belong to.
    pub(crate) fn acls(&self) -> Acls<'static> {
        if self.owned { Acls::creator_all() } else { Acls::anyone_all() }
    }

    pub(crate) const fn is_encrypted(&self) -> bool {
        self.encryption.is_some()
    }

    /// Whether it has anything to say: a client that was given has its own.
    pub(crate) const fn is_silent(&self) -> bool {
        self.user.is_none() && self.encryption.is_none()
    }

    /// A connector for such connections. Files are read every time: certificates are renewed.
    pub(crate) fn apply(&self, connector: Connector) -> Result<Connector, StoreError> {
        let connector = match &self.user {
            None => connector,
            Some(User::Digest(user)) => connector.with_auth("digest", user.as_bytes()),
            Some(User::Sasl(name, password)) => {
                connector.with_sasl(SaslOptions::digest_md5(name.clone(), password.clone()))
            }
        };
        match &self.encryption {
            None => Ok(connector),
            Some(encryption) => Ok(connector.with_tls(encryption.options()?)),
        }
    }

    /// Hosts that no certificate can be for.
    pub(crate) fn check(&self, hosts: &str) -> Result<(), UrlError> {
        let host = |one: &str| one.rsplit_once(':').map_or(one, |(host, _)| host).to_owned();
        let bad = |host: &String| ServerName::try_from(host.trim_matches(['[', ']'])).is_err();
        match hosts.split(',').map(host).find(bad).filter(|_| self.is_encrypted()) {
            None => Ok(()),
            Some(host) => Err(UrlError::Rest {
                scheme: "zk",
                problem: format!("no certificate can be for the host `{host}`"),
                example: "zk://zk1.example.com:2281/tenure?sslrootcert=/etc/tenure/root.pem",
            }),
        }
    }
}

impl Encryption {
    fn of<'a>(parameter: impl Fn(&str) -> Option<&'a str>) -> Result<Option<Self>, UrlError> {
        const EXAMPLE: &str = "sslmode=verify-full&sslrootcert=/etc/tenure/root.pem";
        let wrong = |name: &'static str, problem: &str| UrlError::BadParameter {
            name,
            value: parameter(name).unwrap_or_default().to_owned(),
            problem: problem.to_owned(),
            example: EXAMPLE,
        };
        let wanted = match parameter("sslmode") {
            None => false,
            Some("require" | "verify-full") => true,
            Some("disable") if parameter("sslrootcert").is_none() => return Ok(None),
            Some("disable") => {
                return Err(wrong("sslrootcert", "with sslmode=disable nobody is asked for it"));
            }
            Some(_) => {
                return Err(wrong(
                    "sslmode",
                    "it is disable, require or verify-full, and the last two verify certificate and host",
                ));
            }
        };
        let identity = match (parameter("sslcert"), parameter("sslkey")) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((PathBuf::from(certificate), PathBuf::from(key))),
            (Some(_), None) => return Err(wrong("sslcert", "its key is missing: name it with sslkey=FILE")),
            (None, Some(_)) => {
                return Err(wrong("sslkey", "there is no certificate: name it with sslcert=FILE"));
            }
        };
        match parameter("sslrootcert") {
            Some(roots) => Ok(Some(Self { roots: PathBuf::from(roots), identity })),
            None if wanted => {
                Err(wrong("sslmode", "whoever signed the servers' certificates must be named too"))
            }
            None if identity.is_some() => {
                Err(wrong("sslcert", "whoever signed the servers' certificates must be named too"))
            }
            None => Ok(None),
        }
    }

    fn options(&self) -> Result<TlsOptions, StoreError> {
        // The client takes the provider of the process. An application that has chosen one keeps it.
        if CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        let options = TlsOptions::new().with_pem_ca(&read("sslrootcert", &self.roots)?);
        let options = options.map_err(|error| unusable("sslrootcert", &self.roots, &error))?;
        let Some((certificate, key)) = &self.identity else { return Ok(options) };
        let identity = options.with_pem_identity(&read("sslcert", certificate)?, &read("sslkey", key)?);
        identity.map_err(|error| unusable("sslcert", certificate, &error))
    }
}

fn read(parameter: &str, file: &Path) -> Result<String, StoreError> {
    std::fs::read_to_string(file).map_err(|error| unusable(parameter, file, &error))
}

fn unusable(parameter: &str, file: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::misconfigured(format!(
        "`{}` of the store URL cannot be used: {error}; {parameter} names a PEM file",
        file.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(parameters: &str, user: Option<&str>) -> Result<Access, UrlError> {
        let url = StoreUrl::parse(&format!("zk://h1/tenure?{parameters}")).unwrap();
        Access::of(&url, user.map(str::to_owned))
    }

    #[test]
    fn what_is_made_belongs_to_whoever_is_known() {
        let owned = |parameters: &str, user| access(parameters, user).unwrap().owned;
        assert!(!owned("", None) && owned("", Some("me:secret")));
        assert!(!owned("sslrootcert=r.pem", None));
        assert!(owned("sslrootcert=r.pem&sslcert=c.pem&sslkey=k.pem", None));
        assert!(owned("acl=creator", None) && !owned("acl=anyone", Some("me:secret")));
    }

    #[test]
    fn whoever_names_a_root_wants_encryption() {
        let encrypted = |parameters: &str| access(parameters, None).unwrap().is_encrypted();
        assert!(!encrypted("") && !encrypted("sslmode=disable"));
        assert!(encrypted("sslrootcert=r.pem") && encrypted("sslmode=require&sslrootcert=r.pem"));
    }

    #[test]
    fn what_does_not_fit_together_is_refused_with_what_does() {
        let message = |parameters: &str, user| access(parameters, user).err().unwrap().to_string();
        assert!(message("auth=sasl", None).contains("for the user and password"));
        assert!(message("auth=kerberos", Some("me:x")).contains("digest or sasl"));
        assert!(message("acl=everybody", None).contains("creator or anyone"));
        assert!(message("sslmode=verify-full", None).contains("must be named too"));
        assert!(message("sslmode=prefer", None).contains("verify certificate and host"));
        assert!(message("sslmode=disable&sslrootcert=r.pem", None).contains("nobody is asked"));
        assert!(message("sslrootcert=r.pem&sslcert=c.pem", None).contains("sslkey=FILE"));
        assert!(message("sslrootcert=r.pem&sslkey=k.pem", None).contains("sslcert=FILE"));
        assert!(message("sslcert=c.pem&sslkey=k.pem", None).contains("must be named too"));
    }

    #[test]
    fn a_host_that_no_certificate_can_be_for_is_refused_before_anything_is_asked() {
        let encrypted = access("sslrootcert=r.pem", None).unwrap();
        assert!(encrypted.check("zk1.example.com:2281,10.0.0.1:2281,[::1]:2281").is_ok());
        assert!(encrypted.check("zk_1*:2281").unwrap_err().to_string().contains("`zk_1*`"));
        assert!(access("", None).unwrap().check("zk_1*:2281").is_ok());
    }

    #[test]
    fn an_application_that_installs_no_provider_can_encrypt() {
        let problem = access("sslrootcert=r.pem", None).unwrap();
        let problem = problem.apply(zookeeper_client::Client::connector()).err().unwrap();
        assert!(problem.to_string().contains("r.pem"), "{problem}");
        assert!(CryptoProvider::get_default().is_some());
    }
}
