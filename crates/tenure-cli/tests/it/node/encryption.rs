//! TLS, certificates of clients, and HTTP/2.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::client::{Answer, connect, try_ask};
use super::stage::{Served, Stage, until};

pub struct Papers {
    authority: CertifiedIssuer<'static, KeyPair>,
    ca: String,
    server: (String, String),
    client: (String, String),
}

pub fn papers() -> Papers {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let (server, client) = (issue(&authority, "localhost"), issue(&authority, "a-client"));
    Papers { ca: authority.pem(), server, client, authority }
}

/// A certificate and its key.
fn issue(authority: &CertifiedIssuer<'static, KeyPair>, name: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    (certificate.pem(), key.serialize_pem())
}

fn file(stage: &Stage, name: &str, text: &str) -> PathBuf {
    std::fs::write(stage.path(name), text).unwrap();
    stage.path(name)
}

/// A node with these papers, whose authority is in `authority.pem`.
pub fn secured(stage: &Stage, papers: &Papers, mutual: bool) -> Served {
    let cert = file(stage, "cert.pem", &papers.server.0).display().to_string();
    let key = file(stage, "key.pem", &papers.server.1).display().to_string();
    let ca = file(stage, "authority.pem", &papers.ca).display().to_string();
    let mut flags = vec!["-v", "--tls-cert", &cert, "--tls-key", &key];
    if mutual {
        flags.extend(["--tls-ca", &ca]);
    }
    stage.node("a", &flags)
}

fn config(papers: &Papers, known: bool, protocols: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(papers.ca.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let mut config = match known {
        false => builder.with_no_client_auth(),
        true => {
            let certificate = CertificateDer::from_pem_slice(papers.client.0.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(papers.client.1.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Encrypted.
fn open(address: SocketAddr, config: Arc<ClientConfig>) -> StreamOwned<ClientConnection, TcpStream> {
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(ClientConnection::new(config, name).unwrap(), connect(address))
}

fn ask(address: SocketAddr, config: Arc<ClientConfig>) -> Option<Answer> {
    try_ask(&mut open(address, config), address, "GET", "/cluster/health", &[], "")
}

/// The same once the node has read the store: it serves before, and is not healthy.
fn ask_until_healthy(address: SocketAddr, config: &Arc<ClientConfig>) -> Answer {
    until("it has read the store", || ask(address, Arc::clone(config)).filter(|answer| answer.status == 200))
}

#[test]
fn a_node_with_a_certificate_speaks_tls_and_nothing_else() {
    let (stage, papers) = (Stage::new(), papers());
    let node = secured(&stage, &papers, false);
    let health = ask_until_healthy(node.address, &config(&papers, false, &["http/1.1"])).says(200);
    assert_eq!(health["node_id"], "a");
    let plain = try_ask(&mut connect(node.address), node.address, "GET", "/leader", &[], "");
    assert!(plain.is_none(), "{plain:?}");
    let (other, strangers) = (Stage::new(), self::papers());
    assert!(ask(node.address, config(&strangers, false, &[])).is_none(), "it is not vouched for");
    drop(other);
    let nodes = stage.tenure().args(["nodes", "--json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&nodes.stdout).contains(&format!("https://{}", node.address)));
}

#[test]
fn only_clients_with_a_certificate_are_let_in_where_that_is_demanded() {
    let (stage, papers) = (Stage::new(), papers());
    let node = secured(&stage, &papers, true);
    assert!(ask(node.address, config(&papers, false, &[])).is_none(), "a stranger was let in");
    ask_until_healthy(node.address, &config(&papers, true, &[]));
    let strangers = self::papers();
    let forged = Papers { client: strangers.client, ..papers };
    assert!(ask(node.address, config(&forged, true, &[])).is_none(), "another authority's word counted");
}

#[test]
fn a_certificate_that_is_renewed_is_shown_without_a_restart_and_half_of_one_is_not() {
    let (stage, papers) = (Stage::new(), papers());
    let node = secured(&stage, &papers, true);
    let shown = || {
        let mut stream = open(node.address, config(&papers, true, &[]));
        assert!(try_ask(&mut stream, node.address, "GET", "/live", &[], "").is_some());
        stream.conn.peer_certificates().unwrap()[0].clone().into_owned()
    };
    let of = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    assert_eq!(shown(), of(&papers.server.0));
    let (certificate, key) = issue(&papers.authority, "localhost");
    file(&stage, "cert.pem", &certificate);
    until("it is noticed", || node.said().contains("the certificate was not renewed").then_some(()));
    assert_eq!(shown(), of(&papers.server.0), "its key is not there yet");
    file(&stage, "key.pem", &key);
    until("it is shown", || (shown() == of(&certificate)).then_some(()));
    until("it is told", || node.said().contains("the certificate was renewed").then_some(()));
}

async fn over_http_2<T>(stream: T, address: SocketAddr) -> (http::StatusCode, String)
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let uri = format!("http://{address}/cluster/health");
    let request = http::Request::get(uri).body(Empty::<hyper::body::Bytes>::new()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.version(), http::Version::HTTP_2);
    assert!(answer.headers().contains_key("tenure-term"));
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn http_2_is_spoken_with_and_without_tls() {
    let (stage, papers) = (Stage::new(), papers());
    let (plain, secured) = (stage.node("b", &[]), secured(&stage, &papers, false));
    plain.until_ok("/cluster/health");
    ask_until_healthy(secured.address, &config(&papers, false, &[]));
    let stream = tokio::net::TcpStream::connect(plain.address).await.unwrap();
    let (status, body) = over_http_2(stream, plain.address).await;
    assert!(status.is_success() && body.contains("\"node_id\":\"b\""), "{body}");
    let stream = tokio::net::TcpStream::connect(secured.address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(config(&papers, false, &["h2"]));
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (status, body) = over_http_2(stream, secured.address).await;
    assert!(status.is_success() && body.contains("\"node_id\":\"a\""), "{body}");
}
