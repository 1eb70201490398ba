//! S2: terms strictly rise; no term is granted twice, not even after the store went back in time, as
//! long as somebody remembers.

use tenure_core::Term;

use super::Invariant;
use crate::clock::Real;
use crate::fact::Fact;
use crate::world::World;

/// Remembers what was granted: ever, and since the store last went back. Whatever it has forgotten, from then on its
/// terms strictly rise again; and once they are above all that were ever granted, everything is as it was before.
#[derive(Default)]
pub struct TermsRise {
    highest: Vec<Term>,
    highest_since: Vec<Term>,
    rolled_back: Option<Real>,
}

impl Invariant for TermsRise {
    fn promise(&self) -> &'static str {
        "S2 terms rise"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.highest.resize(world.config.elections, Term::NONE);
        self.highest_since.resize(world.config.elections, Term::NONE);
        match fact {
            Fact::RolledBack { .. } => {
                self.rolled_back = Some(world.real);
                self.highest_since.fill(Term::NONE);
            }
            Fact::Granted { election, node, term, .. } => {
                let (since, ever) = (self.highest_since[*election], self.highest[*election]);
                self.highest_since[*election] = since.max(*term);
                self.highest[*election] = ever.max(*term);
                if *term <= since {
                    return Err(format!("term {term} of e{election} is granted to n{node}, after {since}"));
                }
                return match self.rolled_back {
                    _ if *term > ever => Ok(()),
                    Some(rolled_back) => remembered(*election, *term, rolled_back, world),
                    None => Err(format!("term {term} of e{election} is granted again, to n{node}")),
                };
            }
            _ => {}
        }
        Ok(())
    }
}

/// After a roll-back, whoever remembers a higher term and has reached the store for long enough has
/// told it.
fn remembered(election: usize, term: Term, since: Real, world: &World) -> Result<(), String> {
    for (n, node) in world.nodes.iter().enumerate() {
        let Some(machine) = &node.machine else { continue };
        let connected = world.real.saturating_sub(node.connected_since.max(since))
            > world.config.longest(world.config.ttl) * 3;
        let seen = machine.highest(node.keys[election]);
        let stands = matches!(node.role(election), "waiting");
        if connected && stands && !node.paused && term <= seen {
            return Err(format!("term {term} of e{election} is granted, but n{n} has seen {seen}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tenure_core::{Planted, SessionId};

    use super::*;
    use crate::config::Config;

    /// A world in which no node is up: nobody remembers a term.
    fn world() -> World {
        World::new(Config { elections: 2, ..Config::from_seed(1) }, Planted::default(), false)
    }

    fn granted(election: usize, term: u64) -> Fact {
        let (term, session) = (Term::new(term), SessionId::from_u128(1));
        Fact::Granted { election, node: 0, life: 1, session, term, next: None, sent: 0, at: 0 }
    }

    /// Whether each of these grants is allowed, one after the other.
    fn allowed<const N: usize>(judge: &mut TermsRise, world: &World, terms: [u64; N]) -> [bool; N] {
        terms.map(|term| judge.judge(&granted(0, term), world).is_ok())
    }

    fn roll_back(judge: &mut TermsRise, world: &mut World) {
        world.real += world.config.ttl;
        assert_eq!(judge.judge(&Fact::RolledBack { silent: true }, world), Ok(()));
    }

    #[test]
    fn terms_that_do_not_rise_are_a_violation() {
        let (mut judge, world) = (TermsRise::default(), world());
        assert_eq!(allowed(&mut judge, &world, [1, 2, 5, 5]), [true, true, true, false]);
        assert_eq!(allowed(&mut judge, &world, [4, 5, 6]), [false, false, true]);
        assert_eq!(judge.judge(&granted(1, 1), &world), Ok(()), "another election has terms of its own");
    }

    #[test]
    fn after_a_roll_back_a_forgotten_term_is_granted_again_once_and_terms_rise_from_there() {
        let (mut judge, mut world) = (TermsRise::default(), world());
        assert_eq!(allowed(&mut judge, &world, [4, 5]), [true; 2]);
        roll_back(&mut judge, &mut world);
        assert_eq!(allowed(&mut judge, &world, [3]), [true], "nobody remembers a higher one");
        assert_eq!(allowed(&mut judge, &world, [3, 4, 4]), [false, true, false]);
        assert_eq!(allowed(&mut judge, &world, [2, 5]), [false, true]);
        roll_back(&mut judge, &mut world);
        assert_eq!(allowed(&mut judge, &world, [2, 2]), [true, false]);
    }

    #[test]
    fn a_roll_back_excuses_nothing_any_more_once_a_term_is_above_all_that_were_granted() {
        let (mut judge, mut world) = (TermsRise::default(), world());
        assert_eq!(allowed(&mut judge, &world, [5]), [true]);
        roll_back(&mut judge, &mut world);
        assert_eq!(allowed(&mut judge, &world, [3, 6]), [true; 2]);
        world.real += world.config.ttl * 100;
        for term in 1..=6 {
            assert_eq!(allowed(&mut judge, &world, [term, 6]), [false; 2], "{term}");
        }
        assert_eq!(allowed(&mut judge, &world, [7, 7, 8]), [true, false, true]);
    }
}
