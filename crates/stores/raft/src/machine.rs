//! The replicated state machine: the same commands in the same order make the same state on every member.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tenure_core::{Instant, Namespace};
use tenure_replica::{Ages, Moment, Replica};
use tenure_store::{Changes, Options, Retention};

use crate::clock::{Clock, Tick};
use crate::verbs::{Outcome, Question, Verb};

/// An entry of the log. The member that leads the group stamps it with the time, so that all apply it alike.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Command {
    pub tick: Tick,
    /// For people to read.
    pub wall: SystemTime,
    /// Applied one after the other, at the same time.
    pub orders: Vec<Order>,
}

/// A verb, and where it is to happen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub namespace: Namespace,
    pub retention: Retention,
    pub verb: Verb,
}

/// All that the group keeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    replica: Replica,
    clock: Clock,
}

impl Machine {
    /// Applies a command, the one at this place in the log.
    pub(crate) fn apply(
        &mut self,
        command: Command,
        index: u64,
    ) -> (Vec<Outcome>, Vec<(Namespace, Changes)>) {
        let moment = moment(self.clock.advance(&command.tick, index), command.wall);
        let apply = |Order { namespace, retention, verb }| {
            let options = Options { namespace, retention, ..Options::default() };
            let (outcome, news) =
                self.replica.transact(&options, moment, |transaction| verb.apply(transaction));
            (outcome, (options.namespace, news))
        };
        command.orders.into_iter().map(apply).unzip()
    }

    /// Answers a question as of this tick, and leaves everything as it is.
    pub(crate) fn answer(
        &mut self,
        question: &Question,
        namespace: Namespace,
        tick: &Tick,
        wall: SystemTime,
    ) -> Outcome {
        let options = Options { namespace, ..Options::default() };
        let moment = moment(self.clock.at(tick), wall);
        self.replica.transact(&options, moment, |transaction| question.answer(transaction)).0
    }

    /// The place of the last command.
    pub(crate) fn index(&self) -> Option<u64> {
        self.clock.index()
    }
}

fn moment(now: Instant, wall: SystemTime) -> Moment {
    Moment { now, wall, ages: Ages::Told }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tenure_core::{ElectionName, NodeId, SessionId, Stamp};
    use tenure_store::{Cause, Claim, EventQuery, NodeInfo, Open};

    use super::*;

    fn order(verb: Verb) -> Order {
        Order { namespace: Namespace::default(), retention: Retention { events: 20 }, verb }
    }

    /// Some command, as different from the one before as there are.
    fn command(number: u64) -> Command {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let (session, election) =
            (SessionId::from_u128(u128::from(mixed % 4)), format!("e{}", mixed / 4 % 3));
        let election = ElectionName::new(election).unwrap();
        let over =
            Some(Stamp { session: SessionId::from_u128(u128::from(mixed / 5 % 4)), sequence: mixed / 3 % 7 });
        let verb = match mixed / 16 % 8 {
            0 => Verb::Open(Open {
                session,
                sequence: number,
                ttl: Duration::from_secs(1),
                node: NodeInfo::new(NodeId::new(format!("n{}", mixed % 3)).unwrap(), "here"),
                supersedes: None,
                over,
            }),
            1 | 2 => Verb::Renew { session, sequence: mixed % 7 },
            3 | 4 => Verb::Claim(Claim { over, ..Claim::plain(session, election, number) }),
            5 => Verb::Close { session, cause: Cause::ProcessEnded },
            6 => Verb::Delete { election, force: mixed.is_multiple_of(2) },
            _ => Verb::Petition { election, to: None },
        };
        let tick = Tick {
            writer: u128::from(number / 50),
            reading: Instant::from_nanos(number * 1_000_000_000),
            heard: Some((number.saturating_sub(1), Duration::from_millis(300))),
        };
        Command {
            tick,
            wall: SystemTime::UNIX_EPOCH + Duration::from_secs(number),
            orders: vec![order(verb)],
        }
    }

    #[test]
    fn whoever_applies_the_same_log_has_the_same_state_also_from_a_snapshot_and_however_it_was_read() {
        let (mut one, mut read, mut restored) = (Machine::default(), Machine::default(), Machine::default());
        for number in 1..2000 {
            let outcome = one.apply(command(number), number);
            assert_eq!(read.apply(command(number), number), outcome);
            let question = Question::Events(EventQuery::default());
            let namespace = Namespace::new(format!("nobody-{number}")).unwrap();
            read.answer(&question, namespace, &command(number).tick, SystemTime::now());
            if number % 100 == 0 {
                restored = postcard::from_bytes(&postcard::to_stdvec(&restored).unwrap()).unwrap();
            }
            assert_eq!(restored.apply(command(number), number), outcome);
        }
        assert!(one == read && one == restored);
        assert_ne!(one, Machine::default());
    }
}
