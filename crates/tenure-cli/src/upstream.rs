//! The program beside a node: which requests it gets, and where the others go.

use std::time::Duration;

use clap::{Args, ValueEnum};
use tenure::Gate;
use tenure_http::Tls;
use tenure_http::leader_only::{
    Forwarder, LeaderOnly, LeaderOnlyLayer, Limits, Mode, Origin, OriginError, Rules, Upstream,
};
use tower_layer::Layer;

use crate::cli::duration;

/// What `node` is told of the program beside it.
#[derive(Args, Debug, Clone)]
pub struct UpstreamSettings {
    /// Pass requests on to the program at this address, such as http://127.0.0.1:9000: writes only while this
    /// node leads
    #[arg(long, env = "TENURE_UPSTREAM", value_name = "URL", value_parser = origin)]
    pub upstream: Option<Origin>,
    /// What to do with writes that come while another node leads: 503 (try the next), 307 (go there), or
    /// forward (they are passed on)
    #[arg(long, env = "TENURE_LEADER_ONLY", value_name = "MODE", default_value = "503")]
    pub leader_only: Elsewhere,
    /// This path, and what is below it, is for the leader only, also to read
    #[arg(long, env = "TENURE_LEADER_PATH", value_name = "PATH", value_delimiter = ',', value_parser = path)]
    pub leader_path: Vec<String>,
    /// This path, and what is below it, is for every node, also to write
    #[arg(long, env = "TENURE_ANY_PATH", value_name = "PATH", value_delimiter = ',', value_parser = path)]
    pub any_path: Vec<String>,
    /// How long the program may take to begin its answer
    #[arg(long, env = "TENURE_UPSTREAM_TIMEOUT", value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub upstream_timeout: Duration,
}

/// What becomes of a write where this node does not lead.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elsewhere {
    /// It is refused, with the leader's name
    #[value(name = "503")]
    Refuse,
    /// The client is sent to the leader
    #[value(name = "307")]
    Redirect,
    /// It is passed on to the leader
    Forward,
}

/// A program behind a node.
pub type Program = LeaderOnly<Upstream>;

impl UpstreamSettings {
    /// The program behind this gate, if there is one.
    pub fn behind(&self, gate: &Gate, tls: Option<&Tls>) -> Option<Program> {
        let origin = self.upstream.as_ref()?;
        let limits = Limits { answer: self.upstream_timeout, ..Limits::default() };
        let mode = match self.leader_only {
            Elsewhere::Refuse => Mode::Refuse,
            Elsewhere::Redirect => Mode::Redirect,
            Elsewhere::Forward => Mode::Forward(match tls.and_then(Tls::among_nodes) {
                Some(tls) => Forwarder::with_tls(limits, tls),
                None => Forwarder::new(limits),
            }),
        };
        let rules = self.leader_path.iter().fold(Rules::writes(), |rules, path| rules.path(path, true));
        let rules = self.any_path.iter().fold(rules, |rules, path| rules.path(path, false));
        let layer = LeaderOnlyLayer::new(gate.clone()).elsewhere(mode).only(rules);
        Some(layer.layer(Upstream::new(origin.clone(), limits, gate.clone())))
    }
}

fn origin(text: &str) -> Result<Origin, OriginError> {
    text.parse()
}

fn path(text: &str) -> Result<String, String> {
    if text.starts_with('/') { Ok(text.to_owned()) } else { Err(String::from("a path begins with `/`")) }
}
