//! The children of one term as tasks. What to do with them is decided by [`Supervision`]; here it is done.

use std::any::Any;
use std::collections::HashMap;

use tenure_core::{Order, Reason, Supervision, SupervisionRules};
use tenure_store::clock;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::child::{Child, Job, Life, Task};
use super::post::Post;
use super::status::{Board, SupervisorState};

pub(super) struct Crew<'a> {
    jobs: &'a [Job],
    rules: &'a SupervisionRules,
    board: &'a Board,
    post: Post,
    supervision: Supervision,
    /// Dropped before they have ended, they are aborted.
    tasks: JoinSet<Result<(), String>>,
    lives: HashMap<Id, Life>,
    /// How each child is told things, while it lives.
    latest: Vec<Option<Handle>>,
    /// Which children have been started before.
    started: Vec<bool>,
    born: u64,
    stopping: bool,
    /// Who has used up the budget.
    culprit: Option<usize>,
    up: (mpsc::UnboundedSender<Life>, mpsc::UnboundedReceiver<Life>),
}

/// How one life is told things.
struct Handle {
    number: u64,
    stop: CancellationToken,
    task: AbortHandle,
    /// Why it was aborted.
    complaint: Option<String>,
}

enum Input {
    /// The post is lost.
    Lost,
    /// The supervisor is to stop.
    Stop,
    Ended(Result<(Id, Result<(), String>), JoinError>),
    Up(Life),
    Due,
}

impl<'a> Crew<'a> {
    pub(super) fn new(jobs: &'a [Job], rules: &'a SupervisionRules, board: &'a Board, post: Post) -> Self {
        Self {
            jobs,
            rules,
            board,
            post,
            supervision: Supervision::begin(rules.clone(), clock::now()),
            tasks: JoinSet::new(),
            lives: HashMap::new(),
            latest: jobs.iter().map(|_| None).collect(),
            started: vec![false; jobs.len()],
            born: 0,
            stopping: false,
            culprit: None,
            up: mpsc::unbounded_channel(),
        }
    }

    /// Runs until the post is lost or given up, and every child has been joined. True if the work was
    /// given up because it failed too often.
    pub(super) async fn serve(mut self, stop: &CancellationToken) -> bool {
        loop {
            self.carry_out();
            self.board.show(&self.supervision, self.culprit);
            if self.supervision.is_over() {
                return self.culprit.is_some();
            }
            let input = self.next(stop).await;
            self.take(input);
        }
    }

    async fn next(&mut self, stop: &CancellationToken) -> Input {
        let due = self.supervision.poll_timeout();
        let due = async {
            match due {
                Some(at) => tokio::time::sleep(at.since(clock::now())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.post.lost().cancelled(), if !self.stopping => Input::Lost,
            () = stop.cancelled(), if !self.stopping => Input::Stop,
            Some(ended) = self.tasks.join_next_with_id() => Input::Ended(ended),
            Some(life) = self.up.1.recv() => Input::Up(life),
            () = due => Input::Due,
        }
    }

    fn take(&mut self, input: Input) {
        if matches!(input, Input::Stop) {
            self.post.give_up(Reason::Resigned);
        }
        // First of all: a child that ends because the term is over has not failed.
        self.stop_if_over();
        let now = clock::now();
        match input {
            Input::Lost | Input::Stop => {}
            Input::Ended(ended) => self.ended(ended),
            Input::Up(life) => {
                if self.latest[life.child].as_ref().is_some_and(|latest| latest.number == life.number) {
                    self.supervision.ready(life.child, now);
                }
            }
            Input::Due => self.supervision.handle_timeout(now),
        }
    }

    fn stop_if_over(&mut self) {
        if !self.stopping
            && let Some(pace) = self.post.over()
        {
            self.stopping = true;
            self.board.enter(SupervisorState::Stopping, self.post.term());
            self.supervision.stop(pace, clock::now());
        }
    }

    fn ended(&mut self, ended: Result<(Id, Result<(), String>), JoinError>) {
        let (id, how) = match ended {
            Ok((id, Ok(()))) => (id, String::from("it returned")),
            Ok((id, Err(error))) => (id, error),
            Err(error) => (error.id(), broken_off(error)),
        };
        let Some(Life { child, .. }) = self.lives.remove(&id) else { return };
        let complaint = self.latest[child].take().and_then(|latest| latest.complaint);
        // Whoever was told to stop may end in any way of its own.
        if !self.stopping || complaint.is_some() {
            let error = complaint.unwrap_or(how);
            let name = &self.jobs[child].name;
            tracing::warn!(target: "tenure", child = %name, error, "child_failed");
            self.board.failed(child, error);
        }
        self.supervision.ended(child, clock::now());
    }

    fn carry_out(&mut self) {
        while let Some(order) = self.supervision.poll_order() {
            match order {
                Order::Start(child) => self.start(child),
                Order::Stop(child) => {
                    if let Some(latest) = &self.latest[child] {
                        latest.stop.cancel();
                    }
                }
                Order::Abort(child) => self.abort(child),
                Order::GiveUp(child) => {
                    let SupervisionRules { restarts, within, .. } = self.rules;
                    let name = &self.jobs[child].name;
                    tracing::error!(
                        target: "tenure", child = %name, restarts, ?within,
                        "supervised work failed more often than its budget allows: given up",
                    );
                    self.culprit = Some(child);
                    self.post.give_up(Reason::WorkFailed);
                }
            }
        }
    }

    fn start(&mut self, child: usize) {
        self.born += 1;
        let (job, life) = (&self.jobs[child], Life { child, number: self.born });
        let (stop, up) = (CancellationToken::new(), self.up.0.clone());
        let given = Child { name: job.name.clone(), right: self.post.right(), stop: stop.clone(), life, up };
        let task = self.tasks.spawn(Task { work: (job.work)(given), duty: self.post.share() });
        self.post.employ(task.clone());
        self.lives.insert(task.id(), life);
        self.latest[child] = Some(Handle { number: life.number, stop, task, complaint: None });
        if std::mem::replace(&mut self.started[child], true) {
            self.board.restarted(child);
        }
        tracing::info!(target: "tenure", child = %job.name, "child_started");
    }

    fn abort(&mut self, child: usize) {
        let rules = self.rules.children[child];
        if let Some(latest) = &mut self.latest[child] {
            latest.complaint = Some(match rules.start_within {
                Some(limit) if !self.stopping => format!("it did not come up within {limit:?}"),
                _ => format!("it did not stop within {:?}", rules.stop_within),
            });
            latest.task.abort();
        }
    }
}

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        // Left in the middle: the guard is closed, and the children are aborted. The lease is given back
        // when the last of them is gone.
        self.post.give_up(Reason::Resigned);
    }
}

fn broken_off(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("it panicked: {}", message(&*panic)),
        Err(_) => String::from("it was aborted"),
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
