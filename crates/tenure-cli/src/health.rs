//! `--health-cmd` and `--health-url`: a health check for programs in any language.
//!
//! The check runs on a thread of its own. Its last verdict is what the library's probe tells: while it fails, the node
//! leads nothing and waits in no line.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use serde_json::json;
use tenure::Instant;
use tenure_http::Client;
use tenure_http::leader_only::Origin;
use tenure_store::clock;
use tokio::sync::watch;

use crate::cli::duration;
use crate::failure::Failure;
use crate::output::length;
use crate::voice::Voice;

/// How a node finds out whether it may lead.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Health check")]
pub struct HealthSettings {
    /// Lead, and wait in line, only while this shell command exits with 0, such as 'pg_isready -q'
    #[arg(long, env = "TENURE_HEALTH_CMD", value_name = "CMD")]
    pub health_cmd: Option<String>,
    /// Lead, and wait in line, only while this URL answers with a status of 2xx, such as
    /// http://127.0.0.1:9000/health
    #[arg(long, env = "TENURE_HEALTH_URL", value_name = "URL")]
    pub health_url: Option<HealthUrl>,
    /// How often the health check runs [default: a sixth of the ttl]
    #[arg(long, env = "TENURE_HEALTH_EVERY", value_name = "TIME", value_parser = duration)]
    pub health_every: Option<Duration>,
    /// How long a health check may take before it counts as failed [default: as often as it runs]
    #[arg(long, env = "TENURE_HEALTH_TIMEOUT", value_name = "TIME", value_parser = duration)]
    pub health_timeout: Option<Duration>,
}

/// Where a health check asks.
#[derive(Debug, Clone)]
pub struct HealthUrl {
    origin: Origin,
    path: String,
}

impl FromStr for HealthUrl {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let authority = url.find("://").map_or(0, |at| at + 3);
        let end = url[authority..].find(['/', '?']).map_or(url.len(), |at| authority + at);
        let (origin, path) = url.split_at(end);
        let origin = origin
            .parse()
            .map_err(|error| format!("{error}; a right one is http://127.0.0.1:9000/health"))?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { origin, path })
    }
}

impl HealthSettings {
    /// Starts the check, if there is one.
    ///
    /// # Errors
    /// If times cannot work, or the system gives no thread.
    pub fn start(&self, ttl: Duration, voice: &Voice) -> Result<Option<Verdict>, Failure> {
        let command = self.health_cmd.clone().map(What::Command);
        let url = self.health_url.clone().map(What::Url);
        let what: Vec<What> = command.into_iter().chain(url).collect();
        if what.is_empty() {
            return Ok(None);
        }
        let every = self.health_every.unwrap_or(ttl / 6);
        let timeout = self.health_timeout.unwrap_or(every);
        if every.is_zero() || timeout.is_zero() {
            return Err(Failure::Usage(String::from(
                "--health-every and --health-timeout must be longer than 0s, such as 2s",
            )));
        }
        let (found, verdict) = watch::channel(None);
        let check = Check { what, every, timeout, found, voice: voice.clone() };
        let started = std::thread::Builder::new().name(String::from("tenure-health")).spawn(|| check.run());
        started.map_err(Failure::system)?;
        Ok(Some(Verdict(verdict)))
    }
}

/// What the last check has found; nothing before the first has ended.
#[derive(Clone)]
pub struct Verdict(watch::Receiver<Option<Found>>);

struct Found {
    outcome: Result<(), String>,
    /// Until when it counts.
    until: Instant,
}

impl Verdict {
    /// Waits for the end of the first check.
    pub async fn outcome(mut self) -> Result<(), String> {
        let hangs = || String::from("the health check has not ended in time");
        let found = self.0.wait_for(Option::is_some).await.map_err(|_| hangs())?;
        let Some(Found { outcome, until }) = &*found else { return Err(hangs()) };
        // A check that hangs for longer than it may does not leave a node leading.
        if outcome.is_ok() && *until <= clock::now() { Err(hangs()) } else { outcome.clone() }
    }
}

enum What {
    Command(String),
    Url(HealthUrl),
}

struct Check {
    /// All of it must pass.
    what: Vec<What>,
    every: Duration,
    timeout: Duration,
    found: watch::Sender<Option<Found>>,
    voice: Voice,
}

impl Check {
    /// Checks for as long as the process lives.
    fn run(self) {
        let mut last: Option<Result<(), String>> = None;
        loop {
            let began = clock::now();
            let outcome = self.what.iter().try_for_each(|what| match what {
                What::Command(command) => passes(command, self.timeout),
                What::Url(url) => answers(url, self.timeout),
            });
            let now = clock::now();
            let until = now + self.every + self.timeout * 2;
            self.found.send_replace(Some(Found { outcome: outcome.clone(), until }));
            if last.as_ref() != Some(&outcome) {
                self.say(&outcome);
            }
            last = Some(outcome);
            std::thread::sleep((began + self.every).since(now));
        }
    }

    fn say(&self, outcome: &Result<(), String>) {
        match outcome {
            Ok(()) => self.voice.say("node_healthy", "the health check passes", json!({})),
            Err(problem) => {
                let sentence = format!(
                    "the health check fails: {problem}; until it passes, this node leads nothing and waits in no line"
                );
                self.voice.say("node_unhealthy", &sentence, json!({"problem": problem}));
            }
        }
    }
}

/// Whether a command ends with 0 in time.
fn passes(command: &str, timeout: Duration) -> Result<(), String> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).process_group(0);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    crate::run::hide_settings(&mut shell);
    // This thread lives as long as the process.
    tenure_sys::bind_to_us(&mut shell);
    let failed = |error: std::io::Error| format!("`{command}` cannot be run: {error}");
    let mut child = shell.spawn().map_err(failed)?;
    let group = Pid::from_child(&child);
    let ended = pidfd_open(group, PidfdFlags::empty()).map_err(|error| failed(error.into()));
    let in_time = ended.and_then(|ended| readable_within(&ended, timeout).map_err(failed));
    // It, if it still runs, and whatever it left behind. Nobody else has its number before it is waited for.
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait().map_err(failed)?;
    match in_time? {
        false => Err(format!("`{command}` takes longer than {}", length(timeout))),
        true if status.success() => Ok(()),
        true => Err(format!("`{command}` ended with {status}")),
    }
}

fn readable_within(fd: &impl std::os::fd::AsFd, timeout: Duration) -> std::io::Result<bool> {
    let end = clock::now() + timeout;
    loop {
        let left = Timespec::try_from(end.since(clock::now())).map_err(std::io::Error::other)?;
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether a URL answers with a status of 2xx in time.
fn answers(url: &HealthUrl, timeout: Duration) -> Result<(), String> {
    let HealthUrl { origin, path } = url;
    let runtime = crate::runtime().map_err(|error| error.to_string())?;
    match runtime.block_on(Client::with_timeout(timeout).get(origin, path)) {
        Ok((status, _)) if status.is_success() => Ok(()),
        Ok((status, _)) => Err(format!("{origin}{path} answers with {status}")),
        Err(_) => Err(format!("{origin}{path} gives no answer within {}", length(timeout))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_command_passes_if_it_ends_with_0() {
        assert_eq!(passes("true", LONG), Ok(()));
        assert_eq!(passes("exit 3", LONG).unwrap_err(), "`exit 3` ended with exit status: 3");
        assert!(passes("kill -9 $$", LONG).unwrap_err().contains("signal: 9"));
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended_with_its_children() {
        let problem = passes("sleep 600 & sleep 600", Duration::from_millis(50)).unwrap_err();
        assert_eq!(problem, "`sleep 600 & sleep 600` takes longer than 50ms");
    }

    #[test]
    fn a_url_has_an_origin_and_a_path() {
        let parse = |url: &str| {
            let HealthUrl { origin, path } = url.parse().unwrap();
            (origin.to_string(), path)
        };
        let origin = String::from("http://127.0.0.1:9000");
        assert_eq!(
            parse("http://127.0.0.1:9000/health?deep=1"),
            (origin.clone(), String::from("/health?deep=1"))
        );
        assert_eq!(parse("http://127.0.0.1:9000"), (origin.clone(), String::from("/")));
        assert_eq!(parse("http://127.0.0.1:9000?x"), (origin, String::from("/?x")));
        let refused = "127.0.0.1:9000/health".parse::<HealthUrl>().unwrap_err();
        assert!(refused.ends_with("a right one is http://127.0.0.1:9000/health"), "{refused}");
    }
}
