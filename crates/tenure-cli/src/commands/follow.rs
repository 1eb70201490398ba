//! Following a store: woken by its news, and patient while it is away.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tenure::{ElectionName, Store};
use tenure_store::{Hint, Hints};

use crate::failure::Failure;
use crate::output;

/// How long a follower goes without looking.
///
/// Hints carry no promise: they may be lost, and some stores have none. So whoever follows looks every
/// second besides, and a lost hint costs a second.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Reasons to look again.
pub struct News {
    /// `None`: the store can give no more.
    hints: Option<Hints>,
    /// Only about this one.
    election: Option<ElectionName>,
}

impl News {
    /// Subscribe before the first look, or what happens between the two is found late.
    pub fn of(store: &Arc<dyn Store>, election: Option<&ElectionName>) -> Self {
        Self { hints: Some(store.news()), election: election.cloned() }
    }

    /// Waits for a hint, but no longer than `limit`.
    pub async fn wait(&mut self, limit: Duration) {
        // Out of time is as good as a hint.
        let _ = tokio::time::timeout(limit, self.hint()).await;
    }

    /// Cancel safe: a hint is taken and acted on in one poll.
    async fn hint(&mut self) {
        while let Some(hints) = &mut self.hints {
            match (hints.next().await, &self.election) {
                (Some(hint), Some(ours)) if hint.election().is_some_and(|about| about != ours) => {}
                (Some(Hint::Nodes), Some(_)) => {}
                (Some(_), _) => return,
                (None, _) => self.hints = None,
            }
        }
        std::future::pending().await
    }
}

/// Bears a store that goes away: says so once, and once more when it is back.
pub struct Patience {
    json: bool,
    away: bool,
}

impl Patience {
    pub const fn new(json: bool) -> Self {
        Self { json, away: false }
    }

    /// What the store answered; `None` while it is away.
    pub fn bear<T>(&mut self, answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match answer {
            Ok(value) => {
                if std::mem::take(&mut self.away) {
                    output::notice(self.json, "the store is back");
                }
                Ok(Some(value))
            }
            Err(Failure::Store(problem)) => {
                if !std::mem::replace(&mut self.away, true) {
                    output::notice(self.json, &format!("{problem}; waiting for it to come back"));
                }
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }
}

impl Patience {
    /// The first answer, however long the store is away before.
    pub async fn first<T>(
        &mut self,
        news: &mut News,
        mut question: impl AsyncFnMut() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        loop {
            let answer = question().await;
            if let Some(answer) = self.bear(answer)? {
                return Ok(answer);
            }
            still_read()?;
            news.wait(LOOK_EVERY).await;
        }
    }
}

/// Ends a stream that nobody reads any more.
pub fn still_read() -> Result<(), Failure> {
    if output::unread() { Err(Failure::PipeClosed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_that_goes_away_before_its_first_answer_is_waited_for() {
        let mut news = News { hints: None, election: None };
        let mut asked = 0;
        let mut patience = Patience::new(false);
        let first = patience.first(&mut news, async || {
            asked += 1;
            if asked == 1 { Err(Failure::Store(String::from("it is away"))) } else { Ok(asked) }
        });
        assert_eq!(first.await.unwrap(), 2);
        let refused = patience.first(&mut news, async || Err::<(), _>(Failure::No(String::new())));
        assert!(matches!(refused.await, Err(Failure::No(_))), "only a store that is away is waited for");
    }
}
