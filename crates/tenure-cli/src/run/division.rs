//! A program for each partition that this node owns.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use tenure::{Partition, Reason, TaskListName, Term};
use tenure_store::clock;

use super::orders::{End, Happened, Order, Report, Start, Ward};
use super::program;
use super::share::{Share, Stage};
use super::signals::Wish;
use super::supervisor::{Supervisor, at, is_willing, leave_while_waiting};
use super::waiting::Waiting;
use crate::cli::Restart;
use crate::failure::{Exit, Failure, chain};
use crate::output;

/// A program that was ended although its partition is still ours is started again after this pause.
const AGAIN: Duration = Duration::from_millis(500);

/// Why all programs are stopped.
enum Leaving {
    /// A signal wants us to end.
    Told(i32),
    /// Something is wrong that another try would not mend.
    Failed(Failure),
}

pub struct Division<'s, 'a> {
    post: &'s mut Supervisor<'a>,
    list: TaskListName,
    shares: BTreeMap<u32, Share>,
    /// Each ends when the partition of this number, assigned under this term, is to be given up.
    revocations: FuturesUnordered<BoxFuture<'static, (u32, Term)>>,
    /// Counts the runs of programs.
    runs: Ward,
    leaving: Option<Leaving>,
}

impl<'s, 'a> Division<'s, 'a> {
    pub fn new(post: &'s mut Supervisor<'a>, list: TaskListName) -> Self {
        let (shares, revocations) = (BTreeMap::new(), FuturesUnordered::new());
        Self { post, list, shares, revocations, runs: 0, leaving: None }
    }

    /// Works until a signal ends it, or what cannot be mended. Returns when no program is left.
    pub async fn live(mut self) -> Result<Exit, Failure> {
        let election = self.post.election.clone();
        let mut partitions = self.post.node.partitions_of(election.name().as_str(), self.list.as_str())?;
        let mut waiting = Waiting::new(&self.post.node, &election, self.list.clone())?;
        let mut holding = self.post.node.held();
        self.post.guard.order(&Order::Held(holding.now().into())).await?;
        let sentence = format!(
            "works on `{}`: waits for partitions from the leader of `{}`",
            self.list,
            election.name()
        );
        self.say("working", &sentence, json!({}));
        loop {
            if self.shares.is_empty()
                && let Some(leaving) = self.leaving.take()
            {
                return match leaving {
                    Leaving::Told(signal) => Ok(Exit(End::Signal(signal).code())),
                    Leaving::Failed(failure) => Err(failure),
                };
            }
            let wake = self.shares.values().filter_map(Share::wake).min();
            tokio::select! {
                biased;
                Some(held) = holding.changed() => self.post.guard.order(&Order::Held(held.into())).await?,
                report = self.post.guard.report() => match report {
                    Some(report) => self.heed(report).await?,
                    None => self.replace("guardian_died", "the guardian was killed").await?,
                },
                Some((number, term)) = self.revocations.next() => self.revoked(number, term).await?,
                () = at(wake) => self.attend().await?,
                wish = self.post.signals.next() => self.grant(wish).await?,
                assigned = partitions.next(), if self.leaving.is_none() => match assigned {
                    Some(partition) => {
                        waiting.over();
                        self.take(partition).await?;
                    }
                    None => self.leave(Leaving::Failed(self.over().await), self.post.time_to_stop(true).0).await?,
                },
                why = waiting.next(), if self.shares.is_empty() => {
                    self.say("waiting", &format!("waiting: {why}"), json!({}));
                }
            }
        }
    }

    // ----- a partition comes and goes -------------------------------------------------------

    async fn take(&mut self, partition: Partition) -> Result<(), Failure> {
        let (number, term) = (partition.number(), partition.term());
        let lost = partition.cancellation();
        self.revocations.push(Box::pin(async move {
            lost.cancelled().await;
            (number, term)
        }));
        let restart = self.post.asked.run.restart.unwrap_or(Restart::OnFailure);
        self.shares.insert(number, Share::new(partition, restart));
        self.start(number).await
    }

    async fn start(&mut self, number: u32) -> Result<(), Failure> {
        let Some(share) = self.shares.get_mut(&number) else { return Ok(()) };
        self.runs += 1;
        share.stage = Stage::Running { ward: self.runs, since: clock::now() };
        let start = Start {
            ward: self.runs,
            program: program::fill(&self.post.program, number),
            environment: vec![
                (String::from("TENURE_NODE"), self.post.voice.node.clone()),
                (String::from("TENURE_NAMESPACE"), self.post.namespace.clone()),
                (String::from("TENURE_TASK_LIST"), self.list.to_string()),
                (String::from("TENURE_PARTITION"), number.to_string()),
                (String::from("TENURE_TERM"), share.partition.term().to_string()),
            ],
            held: self.post.node.held().now().into(),
        };
        self.post.guard.order(&Order::Start(start)).await
    }

    /// A partition is to be given up.
    async fn revoked(&mut self, number: u32, term: Term) -> Result<(), Failure> {
        let Some(share) = self.shares.get_mut(&number).filter(|share| share.partition.term() == term) else {
            return Ok(());
        };
        let reason = share.partition.check().map_or_else(|over| over.reason, |_| Reason::Lapsed);
        let willing = is_willing(reason);
        let (grace, doubt) = self.post.time_to_stop(willing);
        // A slow guardian costs all programs their lives, and while the session is held there is time.
        let doubt = if willing { grace + self.post.asked.node.ttl / 2 } else { doubt };
        let ward = share.ward();
        if let Some(ward) = ward {
            share.stage = Stage::Stopping { ward, doubt: Some(clock::now() + doubt) };
        }
        let sentence = format!("partition {number} of `{}` is to be given up: {reason}", self.list);
        let data = json!({"partition": number, "term": term.number(), "reason": reason.name()});
        self.say("partition_revoked", &sentence, data);
        match ward {
            Some(ward) => self.post.guard.order(&Order::Stop { ward, grace }).await?,
            None => self.release(number),
        }
        if self.post.asked.run.exit_on_loss && !willing {
            let lost = Failure::Lost(format!("the session was lost: {reason}"));
            self.leave(Leaving::Failed(lost), grace).await?;
        }
        Ok(())
    }

    /// Nothing works on a partition any more.
    fn release(&mut self, number: u32) {
        let Some(Share { partition, .. }) = self.shares.remove(&number) else { return };
        let sentence = format!("partition {number} of `{}` is released", self.list);
        self.say(
            "partition_released",
            &sentence,
            json!({"partition": number, "term": partition.term().number()}),
        );
    }

    // ----- programs -------------------------------------------------------------------------

    async fn heed(&mut self, Report { ward, what }: Report) -> Result<(), Failure> {
        let found = self.shares.iter().find(|(_, share)| share.ward() == Some(ward));
        let Some((&number, share)) = found else { return Ok(()) };
        let (list, term) = (&self.list, share.partition.term().number());
        match what {
            Happened::Started { pid } => {
                let sentence =
                    format!("partition {number} of `{list}` under term {term}: started as process {pid}");
                let data = json!({"partition": number, "term": term, "pid": pid});
                self.say("partition_assigned", &sentence, data);
            }
            Happened::Ended { end, lapsed } => self.ended(number, Some(end).filter(|_| !lapsed)),
            Happened::TooLate => self.ended(number, None),
            Happened::Refused { errno } => {
                let words = program::fill(&self.post.program, number);
                self.release(number);
                let refused = program::refused(&words[0], errno, "all partitions are");
                self.leave(Leaving::Failed(refused), self.post.time_to_stop(true).0).await?;
            }
            Happened::Immune { pids } => {
                let sentence = format!(
                    "processes {pids:?} of partition {number} belong to somebody else and cannot be killed; it is \
                     not released while they run"
                );
                self.say("immune", &sentence, json!({"partition": number, "pids": pids}));
            }
        }
        Ok(())
    }

    /// Nothing is left of a program. `None`: it was not its own end, nor was it asked for.
    fn ended(&mut self, number: u32, end: Option<End>) {
        let Some(share) = self.shares.get_mut(&number) else { return };
        let asked = matches!(share.stage, Stage::Stopping { .. }) || self.leaving.is_some();
        if asked || share.partition.check().is_err() {
            return self.release(number);
        }
        let Some(end) = end else {
            share.stage = Stage::Pausing { until: clock::now() + AGAIN };
            return;
        };
        let pause = share.ended(end);
        let list = &self.list;
        match pause {
            Some(pause) => {
                let pause_ms = output::millis(pause);
                let pause = output::length(pause);
                let sentence =
                    format!("the program of partition {number} of `{list}` {end}; again in {pause}");
                self.say("restarting", &sentence, json!({"partition": number, "pause_ms": pause_ms}));
            }
            None => {
                let sentence = format!(
                    "the program of partition {number} of `{list}` {end}; the partition stays with this node, and \
                     nothing runs for it"
                );
                self.say("finished", &sentence, json!({"partition": number, "exit_code": end.code()}));
            }
        }
    }

    /// Does what is due.
    async fn attend(&mut self) -> Result<(), Failure> {
        let now = clock::now();
        let due = |share: &Share| share.wake().is_some_and(|at| at <= now);
        let due: Vec<u32> =
            self.shares.iter().filter(|(_, share)| due(share)).map(|(number, _)| *number).collect();
        for number in due {
            match self.shares.get(&number).map(|share| share.stage) {
                Some(Stage::Stopping { .. }) => {
                    return self.replace("guardian_silent", "the guardian does not answer").await;
                }
                Some(_) => self.start(number).await?,
                None => {}
            }
        }
        Ok(())
    }

    /// Ends all programs in the guardian's place, and goes on with another guardian.
    async fn replace(&mut self, event: &str, what: &str) -> Result<(), Failure> {
        self.say(event, &format!("{what}: all programs are ended"), json!({}));
        self.post.new_guardian().await?;
        let ran: Vec<u32> = self
            .shares
            .iter()
            .filter(|(_, share)| share.ward().is_some())
            .map(|(number, _)| *number)
            .collect();
        for number in ran {
            self.ended(number, None);
        }
        Ok(())
    }

    // ----- the end --------------------------------------------------------------------------

    async fn grant(&mut self, wish: Wish) -> Result<(), Failure> {
        let runs = self.shares.values().any(|share| share.ward().is_some());
        match wish {
            Wish::Pass(signal) if runs => self.post.guard.order(&Order::Signal(signal)).await,
            Wish::End(signal) => {
                // Asked twice: no more patience.
                let again = matches!(self.leaving, Some(Leaving::Told(_)));
                let grace = if again { Duration::ZERO } else { self.post.time_to_stop(true).0 };
                self.leave(Leaving::Told(signal), grace).await
            }
            wish @ Wish::Pass(signal) if leave_while_waiting(wish).is_some() => {
                self.leave(Leaving::Told(signal), Duration::ZERO).await
            }
            Wish::Pass(_) => Ok(()),
        }
    }

    /// Stops all programs. What was the reason first is the reason.
    async fn leave(&mut self, why: Leaving, grace: Duration) -> Result<(), Failure> {
        self.leaving.get_or_insert(why);
        let all: Vec<u32> = self.shares.keys().copied().collect();
        for number in all {
            let Some(share) = self.shares.get_mut(&number) else { continue };
            match share.stage {
                Stage::Running { ward, .. } => {
                    share.stage = Stage::Stopping { ward, doubt: None };
                    self.post.guard.order(&Order::Stop { ward, grace }).await?;
                }
                Stage::Stopping { ward, .. } => self.post.guard.order(&Order::Stop { ward, grace }).await?,
                Stage::Pausing { .. } | Stage::Idle => self.release(number),
            }
        }
        Ok(())
    }

    /// Why the node has come to its end.
    async fn over(&self) -> Failure {
        match self.post.election.leader().await {
            Err(error) => Failure::System(chain(&error)),
            Ok(_) => Failure::System(String::from("the node has come to its end")),
        }
    }

    fn say(&self, event: &str, sentence: &str, mut data: serde_json::Value) {
        data["task_list"] = json!(self.list.as_str());
        self.post.voice.say(event, sentence, data);
    }
}
