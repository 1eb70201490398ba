//! The group as one who asks sees it: many addresses, one of which leads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_store::{StoreError, clock};

use crate::lines::{Lines, Trouble};
use crate::place::Place;
use crate::wire::{Request, Response};

/// How long somebody who leads is looked for.
const LIMIT: Duration = Duration::from_secs(8);
/// How long to wait before everybody is asked again.
const ROUND: Duration = Duration::from_millis(20);
/// How long a member may take to answer before somebody else is asked. It answers by itself before that, if it
/// can.
const ANSWER: Duration = Duration::from_secs(12);
/// How often a question is handed on at once: more often, and nobody knows who leads.
const HOPS: u32 = 3;

/// Finds whoever leads, and asks.
pub(crate) struct Group {
    pub(crate) lines: Arc<Lines>,
    /// The member of this process, if there is one. It is asked first: it knows who leads.
    pub(crate) place: Option<Arc<Place>>,
    peers: Vec<String>,
    guess: Mutex<Guess>,
}

#[derive(Default)]
struct Guess {
    /// Who led last.
    leader: Option<String>,
    /// Whom to ask if that is not known.
    next: usize,
}

impl Group {
    pub(crate) fn new(lines: Arc<Lines>, place: Option<Arc<Place>>, peers: Vec<String>) -> Self {
        Self { lines, place, peers, guess: Mutex::default() }
    }

    /// Where members are, as the URL has it.
    pub(crate) fn peers(&self) -> &[String] {
        &self.peers
    }

    /// Asks whoever leads. Being handed on is not the end of it, nor is an election: only when nobody leads
    /// for a while.
    ///
    /// # Cancel safety
    /// The request may or may not be heard. The next one goes elsewhere first.
    pub(crate) async fn ask(&self, request: &Request) -> Result<Response, StoreError> {
        let until = clock::now() + LIMIT;
        let (mut to, mut hops, mut tried) = (self.first(), 0, 0);
        let mut problems = BTreeMap::new();
        loop {
            let doubt = Doubt { group: self, member: &to };
            let answer = self.ask_one(&to, request).await;
            let why = match answer {
                Ok(Response::Elsewhere { leader: Some(leader) }) if hops < HOPS && leader != to => {
                    doubt.dispel();
                    hops += 1;
                    to = leader;
                    continue;
                }
                Ok(Response::Elsewhere { .. }) => String::from("no member leads the group"),
                Ok(Response::NotNow(why)) => why,
                Ok(Response::Refused(why)) => {
                    doubt.dispel();
                    return Err(StoreError::misconfigured(why));
                }
                Ok(Response::Unknown(why)) => return Err(StoreError::indeterminate(why)),
                Ok(answer) => {
                    doubt.dispel();
                    self.guess().leader = Some(to);
                    return Ok(answer);
                }
                Err(Trouble::NotSent(error)) => format!("not reached, {error}"),
                Err(Trouble::Unanswered(error)) => {
                    return Err(StoreError::indeterminate(format!("{to} did not answer: {error}")));
                }
            };
            drop(doubt);
            problems.insert(to, why);
            if clock::now() >= until {
                let problems: Vec<String> =
                    problems.into_iter().map(|(member, why)| format!("{member}: {why}")).collect();
                return Err(StoreError::unavailable(format!(
                    "no member of the group took the request: {}",
                    problems.join("; ")
                )));
            }
            tried += 1;
            if tried % self.peers.len() == 0 {
                tokio::time::sleep(ROUND).await;
            }
            (to, hops) = (self.another(), 0);
        }
    }

    /// Whether any member can be reached: each is tried once.
    pub(crate) async fn reach(&self) -> Result<(), StoreError> {
        let mut problems = Vec::new();
        for peer in &self.peers {
            match self.lines.connect(peer).await {
                Ok(_) => return Ok(()),
                Err(error) => problems.push(format!("{peer}: {error}")),
            }
        }
        Err(StoreError::unavailable(format!("cannot reach a member of the group: {}", problems.join("; "))))
    }

    /// Asks this member, whoever leads.
    pub(crate) async fn ask_one(&self, to: &str, request: &Request) -> Result<Response, Trouble> {
        if let Some(place) = self.place.as_ref().filter(|place| place.address() == to) {
            return Ok(place.answer(request.clone()).await);
        }
        let answered = tokio::time::timeout(ANSWER, self.lines.ask(to, request)).await;
        answered.unwrap_or_else(|elapsed| Err(Trouble::Unanswered(elapsed.into())))
    }

    /// Who answered last, as the one that leads.
    pub(crate) fn leader(&self) -> Option<String> {
        self.guess().leader.clone()
    }

    /// Trusts no connection and no guess of before.
    pub(crate) fn reset(&self) {
        self.lines.reset();
        self.guess().leader = None;
    }

    fn first(&self) -> String {
        if let Some(place) = &self.place {
            return place.address().to_owned();
        }
        let guess = self.guess();
        guess.leader.clone().unwrap_or_else(|| self.peers[guess.next % self.peers.len()].clone())
    }

    fn another(&self) -> String {
        let mut guess = self.guess();
        guess.leader = None;
        guess.next = guess.next.wrapping_add(1);
        self.peers[guess.next % self.peers.len()].clone()
    }

    fn guess(&self) -> std::sync::MutexGuard<'_, Guess> {
        self.guess.lock().expect("nobody panics over a guess")
    }
}

/// Until there is an answer, it is doubtful that we ask the right one: whoever gives up waiting asks another
/// one next time.
struct Doubt<'a> {
    group: &'a Group,
    member: &'a str,
}

impl Doubt<'_> {
    fn dispel(self) {
        std::mem::forget(self);
    }
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        let mut guess = self.group.guess();
        if guess.leader.as_deref() == Some(self.member) {
            guess.leader = None;
        }
        guess.next = guess.next.wrapping_add(1);
    }
}
