//! One program for an election: stand, serve, stand again.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use tenure::{ElectionError, ElectionName, Instant, Leadership, Reason, Term};
use tenure_store::{Cause, clock};

use super::orders::{End, Happened, Order, Report, Start, Ward};
use super::program;
use super::restart::Backoff;
use super::signals::Wish;
use super::supervisor::{Supervisor, at, is_willing, leave_while_waiting};
use crate::cli::Restart;
use crate::failure::{Exit, Failure, chain};
use crate::output;

/// There is one run at a time, so they need not be told apart.
const PROGRAM: Ward = 0;

/// How long it may take to find out who runs the program next.
const LOOK: Duration = Duration::from_secs(5);

/// How a term of service ended.
enum Served {
    /// The program has ended.
    Ended { end: End, ran: Duration },
    /// Leadership is over, and the program with it.
    Lost(Reason),
    /// A signal wants us to end.
    Told { signal: i32, end: Option<End> },
}

impl Supervisor<'_> {
    /// Runs the program whenever elected.
    pub async fn contest(&mut self) -> Result<Exit, Failure> {
        let mut backoff = Backoff::new(self.asked.run.restart.unwrap_or(Restart::Never));
        if self.is_done().await? {
            return Ok(self.say_done());
        }
        loop {
            let leadership = match self.wait().await? {
                Ok(leadership) => leadership,
                Err(exit) => return Ok(exit),
            };
            // It may have been closed after we looked and before we stood. No grant is older than the closing now.
            if self.is_done().await? {
                return Ok(self.say_done());
            }
            match self.serve(leadership).await? {
                Served::Told { signal, end } => return Ok(Exit(end.unwrap_or(End::Signal(signal)).code())),
                // Standing again would start it anew, against the wish of whoever ended it.
                Served::Lost(Reason::Ended) => return Err(cannot_stand(ElectionError::Ended)),
                Served::Lost(reason) if self.asked.run.exit_on_loss && reason != Reason::Asked => {
                    return Err(Failure::Lost(format!("leadership was lost: {reason}")));
                }
                Served::Lost(_) => {}
                Served::Ended { end, ran } => match backoff.after(end, ran) {
                    None if self.asked.run.once && end == End::Code(0) => return Ok(Exit::DONE),
                    None => {
                        let sentence =
                            format!("the program {end}; the lease is free, and {}", self.next().await);
                        self.voice.say("program_ended", &sentence, how(end));
                        if end != End::Code(0) {
                            self.say_failed_in_turn(end, LOOK).await;
                        }
                        return Ok(Exit(end.code()));
                    }
                    Some(pause) => {
                        let sentence =
                            format!("the program {end}; standing again in {}", output::length(pause));
                        self.voice.say("restarting", &sentence, json!({"pause_ms": output::millis(pause)}));
                        if let Some(exit) = self.pause(pause).await {
                            return Ok(exit);
                        }
                    }
                },
            }
        }
    }

    /// Waits until nothing but a signal can end it earlier.
    async fn pause(&mut self, pause: Duration) -> Option<Exit> {
        let mut over = pin!(tokio::time::sleep(pause));
        loop {
            tokio::select! {
                () = &mut over => return None,
                wish = self.signals.next() => {
                    let exit = leave_while_waiting(wish);
                    if exit.is_some() {
                        return exit;
                    }
                }
            }
        }
    }

    // ----- waiting --------------------------------------------------------------------------

    /// Stands until elected. `Err` within: a signal wants us to end.
    async fn wait(&mut self) -> Result<Result<Leadership, Exit>, Failure> {
        let election = self.election.clone();
        let mut elected = pin!(election.elected());
        let mut changes = election.observe();
        let mut holding = self.node.held();
        self.guard.order(&Order::Held(holding.now().into())).await?;
        let mut said = None;
        loop {
            tokio::select! {
                biased;
                leadership = &mut elected => return match leadership {
                    Err(ElectionError::Ended) if self.asked.run.once => Ok(Err(self.say_done())),
                    leadership => Ok(Ok(leadership.map_err(cannot_stand)?)),
                },
                wish = self.signals.next() => if let Some(exit) = leave_while_waiting(wish) {
                    return Ok(Err(exit));
                },
                Some(held) = holding.changed() => self.guard.order(&Order::Held(held.into())).await?,
                Some(change) = changes.next() => {
                    let leader = change.leader.as_ref().map(ToString::to_string);
                    if leader.as_deref() != Some(self.voice.node.as_str()) && said.as_ref() != Some(&change) {
                        self.say_waiting(leader, change.term.number());
                    }
                    said = Some(change);
                }
                report = self.guard.report() => if report.is_none() {
                    self.new_guardian().await?;
                    self.guard.order(&Order::Held(holding.now().into())).await?;
                },
            }
        }
    }

    fn say_waiting(&self, leader: Option<String>, term: u64) {
        let name = self.election.name();
        let sentence = match &leader {
            Some(leader) => format!("waiting: `{leader}` leads `{name}` under term {term}"),
            None => format!("no leader of `{name}` is known at the moment"),
        };
        self.voice.say("leader_changed", &sentence, json!({"leader_id": leader, "term": term}));
    }

    // ----- serving --------------------------------------------------------------------------

    /// Runs the program under a term. Returns when nothing of it is left, and the lease is given back.
    async fn serve(&mut self, leadership: Leadership) -> Result<Served, Failure> {
        let began = clock::now();
        let term = leadership.term();
        let mut holding = self.node.held();
        let start = Start {
            ward: PROGRAM,
            program: self.program.clone(),
            environment: self.environment(term.number()),
            held: holding.now().into(),
        };
        self.guard.order(&Order::Start(start)).await?;
        let mut stopping: Option<Stopping> = None;
        let lost = leadership.cancellation();
        let mut runs = true;
        let mut given_up = false;
        let end = loop {
            // Only once it is time to doubt the guardian.
            let doubt = stopping.as_ref().and_then(|stopping| stopping.doubt);
            tokio::select! {
                biased;
                Some(held) = holding.changed() => self.guard.order(&Order::Held(held.into())).await?,
                report = self.guard.report() => match report.map(|Report { what, .. }| what) {
                    Some(Happened::Started { pid }) => {
                        let sentence = format!("leading `{}` under term {term}: started as process {pid}", self.election.name());
                        self.voice.say("leader_elected", &sentence, json!({"term": term.number(), "pid": pid}));
                    }
                    Some(Happened::Ended { end, lapsed }) => {
                        // We were stopped or starved, and the guardian knew before us.
                        if lapsed && runs {
                            let reason = leadership.check().map_or_else(|over| over.reason, |_| Reason::Lapsed);
                            self.say_loss(reason, term.number());
                            let told = stopping.and_then(|stopping| stopping.told);
                            stopping = Some(Stopping { told, reason: Some(reason), doubt: None });
                        }
                        break Some(end);
                    }
                    Some(Happened::TooLate) => break None,
                    Some(Happened::Refused { errno }) => {
                        let refused = program::refused(&self.program[0], errno, "the lease was");
                        leadership.stopped_because(Cause::ProgramExited(refused.code().into()));
                        return Err(refused);
                    }
                    Some(Happened::Immune { pids }) => self.voice.say("immune", &format!(
                        "processes {pids:?} of the program belong to somebody else and cannot be killed; the lease \
                         is not given back while they run"), json!({"pids": pids})),
                    None => {
                        given_up = true;
                        self.voice.say("guardian_died", "the guardian was killed: the program is ended", json!({}));
                        self.new_guardian().await?;
                        break Some(End::Signal(signal_hook::consts::SIGKILL));
                    }
                },
                () = at(doubt) => {
                    given_up = true;
                    self.voice.say("guardian_silent", "the guardian does not answer: the program is ended", json!({}));
                    self.new_guardian().await?;
                    break Some(End::Signal(signal_hook::consts::SIGKILL));
                },
                () = lost.cancelled(), if runs => {
                    runs = false;
                    let reason = leadership.check().map_or_else(|over| over.reason, |_| Reason::Lapsed);
                    let (grace, doubt) = self.say_loss(reason, term.number());
                    self.guard.order(&Order::Stop { ward: PROGRAM, grace }).await?;
                    let told = stopping.and_then(|stopping| stopping.told);
                    stopping = Some(Stopping { told, reason: Some(reason), doubt: Some(clock::now() + doubt) });
                }
                wish = self.signals.next() => match wish {
                    Wish::End(signal) => {
                        // Asked twice: no more patience.
                        let again = stopping.as_ref().is_some_and(|stopping| stopping.told.is_some());
                        let grace = if again { Duration::ZERO } else { self.asked.run.grace };
                        self.guard.order(&Order::Stop { ward: PROGRAM, grace }).await?;
                        let reason = stopping.and_then(|stopping| stopping.reason);
                        stopping = Some(Stopping { told: Some(signal), reason, doubt: None });
                    }
                    Wish::Pass(signal) => self.guard.order(&Order::Signal(signal)).await?,
                },
            }
        };
        let done = stopping.is_none() && end == Some(End::Code(0));
        if done && self.asked.run.once {
            // While the lease is ours: nobody is elected before everybody knows.
            self.close().await;
        }
        // The program is gone, so the lease can be. One that was told to stop has not ended by itself.
        leadership.stopped_because(match (&stopping, end) {
            (None, Some(end)) => end.cause(),
            _ => Cause::Resigned,
        });
        if let (Some(_), Some(end), false) = (&stopping, end, given_up) {
            self.say_stopped(end);
        }
        let stopping = stopping.unwrap_or(Stopping { told: None, reason: None, doubt: None });
        Ok(match (stopping.told, stopping.reason, end) {
            (Some(signal), ..) => Served::Told { signal, end },
            (None, Some(reason), _) => Served::Lost(reason),
            (None, None, Some(end)) => Served::Ended { end, ran: clock::now().since(began) },
            (None, None, None) => Served::Lost(Reason::Lapsed),
        })
    }

    /// Says that leadership is over; gives the time that the program has to stop, and the guardian
    /// to see to it.
    fn say_loss(&self, reason: Reason, term: u64) -> (Duration, Duration) {
        // Of an unhealthy node the session is renewed, and the lease held, until the program has stopped.
        let willing = is_willing(reason) || reason == Reason::Unhealthy;
        let times = self.time_to_stop(willing);
        let name = self.election.name();
        let next = match reason {
            Reason::Lapsed if !self.asked.run.exit_on_loss => ", then standing again",
            _ => "",
        };
        let sentence = format!("term {term} of `{name}` is over: {reason}; stopping the program{next}");
        let event = if willing { "leader_resigned" } else { "leader_lost" };
        self.voice.say(event, &sentence, json!({"term": term, "reason": reason.name()}));
        times
    }

    /// Says how a program ended that was told to stop.
    fn say_stopped(&self, end: End) {
        let late = match end {
            End::Signal(signal_hook::consts::SIGKILL) => ": it had not stopped in time",
            _ => "",
        };
        self.voice.say("program_ended", &format!("the program {end}{late}"), how(end));
    }

    // ----- what follows the program's end -----------------------------------------------------

    /// Who runs it next, as far as that is known.
    async fn next(&self) -> String {
        let look = async {
            // In this order: a candidate that is elected in between is the leader.
            let standing = self.election.candidates().await.ok()?.into_iter().map(|candidate| candidate.node);
            let leader = self.election.leader().await.ok()?.map(|leader| leader.node);
            let others = leader.into_iter().chain(standing);
            Some(others.map(|node| node.to_string()).find(|node| *node != self.voice.node))
        };
        match tokio::time::timeout(LOOK, look).await {
            Ok(Some(Some(node))) => format!("`{node}` runs it next"),
            Ok(Some(None)) => String::from("no other node stands"),
            Ok(None) | Err(_) => String::from("the next candidate runs it"),
        }
    }

    /// Whether this election was closed: with `--once`, that is the end of it for everybody.
    async fn is_done(&self) -> Result<bool, Failure> {
        if !self.asked.run.once {
            return Ok(false);
        }
        let record = crate::store::ask(self.node.store().read(self.election.name().clone())).await?;
        Ok(record.ended != Term::NONE)
    }

    fn say_done(&self) -> Exit {
        let name = self.election.name();
        let sentence = format!(
            "`{name}` is closed: its program has ended with code 0 before, or it was ended with `tenure delete`; \
             nothing is run"
        );
        self.voice.say("election_closed", &sentence, json!({}));
        Exit::DONE
    }

    /// Ends the election, so that no other node runs the program.
    async fn close(&self) {
        let name = self.election.name();
        let sentence = match tokio::time::timeout(self.asked.node.ttl, self.election.delete_even_if_led())
            .await
        {
            Ok(Ok(())) => {
                format!(
                    "the program ended with code 0; `{name}` is closed, and other copies end without running it"
                )
            }
            Ok(Err(error)) => not_closed(name, &chain(&error)),
            Err(_) => not_closed(name, "the store does not answer"),
        };
        self.voice.say("program_ended", &sentence, how(End::Code(0)));
    }

    fn environment(&self, term: u64) -> Vec<(String, String)> {
        vec![
            (String::from("TENURE_ELECTION"), self.election.name().to_string()),
            (String::from("TENURE_NODE"), self.voice.node.clone()),
            (String::from("TENURE_TERM"), term.to_string()),
            (String::from("TENURE_NAMESPACE"), self.namespace.clone()),
        ]
    }
}

/// A program that was told to stop.
#[derive(Clone, Copy)]
struct Stopping {
    /// By this signal to us.
    told: Option<i32>,
    /// For this loss.
    reason: Option<Reason>,
    /// When the guardian itself is in doubt.
    doubt: Option<Instant>,
}

fn not_closed(name: &ElectionName, problem: &str) -> String {
    format!(
        "the program ended with code 0, but `{name}` could not be closed, so another node may run it: {problem}"
    )
}

/// How a program ended, for programs.
fn how(end: End) -> serde_json::Value {
    match end {
        End::Code(code) => json!({"exit_code": code}),
        End::Signal(signal) => json!({"signal": signal}),
    }
}

fn cannot_stand(error: ElectionError) -> Failure {
    match error {
        ElectionError::Ended => Failure::No(String::from("the election was ended by `tenure delete`")),
        ElectionError::NotEligible => Failure::Usage(String::from(
            "this node is not eligible, so it would never run anything; leave out --eligible=false",
        )),
        ElectionError::Closed(ending) => Failure::System(ending.to_string()),
        other => Failure::System(chain(&other)),
    }
}
