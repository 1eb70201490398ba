//! Between what a ledger says in words and what plans need in numbers.

use std::collections::{BTreeMap, HashMap};

use tenure_core::TaskListName;
use tenure_core::partitions::{Declared, Labels, Member, Sighting, TaskList, Told};
use tenure_store::{Listed, Published, WorkerRecord};

use super::ledger::Heard;
use crate::partitions::{TaskList as Arranged, Worker};

/// The task lists that are known, and the numbers that words were given.
#[derive(Default)]
pub(super) struct Vocabulary {
    lists: BTreeMap<u32, (TaskListName, Option<Arranged>)>,
    /// Counts the surveys.
    survey: u64,
    words: Numbers,
    zones: Numbers,
}

/// Numbers for words. A word that neither a task list nor a worker of the last survey uses is forgotten. Its number is
/// never given to another one: a member that is expected back may still have it.
#[derive(Default)]
struct Numbers {
    by_word: HashMap<String, Numbered>,
    last: u32,
}

struct Numbered {
    number: u32,
    used: u64,
}

impl Numbers {
    fn of(&mut self, word: &str, survey: u64) -> u32 {
        if let Some(known) = self.by_word.get_mut(word) {
            known.used = survey;
            return known.number;
        }
        self.last = self.last.saturating_add(1);
        self.by_word.insert(word.to_owned(), Numbered { number: self.last, used: survey });
        self.last
    }

    fn forget_before(&mut self, survey: u64) {
        self.by_word.retain(|_, known| known.used >= survey);
    }
}

impl Vocabulary {
    /// What the store said, as the machines understand it. Task lists that it told of are known from now on.
    pub(super) fn told(&mut self, heard: Heard) -> Told {
        match heard {
            Heard::Survey(survey) => {
                self.survey += 1;
                let seen = survey.workers.into_iter().map(|worker| self.sighting(worker)).collect();
                self.forget_unused();
                Told::Survey { revision: survey.revision, seen }
            }
            Heard::Leaf(leaf) => {
                leaf.lists.into_iter().for_each(|listed| self.learn(listed));
                Told::Read(leaf.page)
            }
            Heard::Published(Published::Written { revision, refused }) => {
                Told::Published { revision, refused }
            }
            Heard::Published(Published::TermOver) => Told::TermOver,
            Heard::Published(Published::Overtaken) => Told::Overtaken,
            Heard::Acknowledged(notices) => Told::Acknowledged { notices },
        }
    }

    /// What people call a task list.
    pub(super) fn name(&self, list: u32) -> Option<&TaskListName> {
        self.lists.get(&list).map(|(name, _)| name)
    }

    fn learn(&mut self, listed: Listed) {
        let arranged = listed.document.and_then(|document| {
            let read = serde_json::from_str(&document);
            read.map_err(|error| {
                tracing::error!(target: "tenure", task_list = %listed.name, %error, "a task list is not understood");
            })
            .ok()
        });
        self.lists.insert(listed.number, (listed.name, arranged));
    }

    /// All task lists, by their numbers. What was dropped has no partitions.
    pub(super) fn declared(&mut self) -> Vec<Declared> {
        let count = self.lists.keys().next_back().map_or(0, |last| last + 1);
        let lists: Vec<_> = (0..count).map(|number| self.lists.get(&number).cloned()).collect();
        lists
            .into_iter()
            .map(|known| match known {
                Some((name, Some(arranged))) => self.declare(&name, &arranged),
                _ => TaskList::new(0).into(),
            })
            .collect()
    }

    /// Only who works on a task list gets anything of it: that is a label like any other.
    fn declare(&mut self, name: &TaskListName, arranged: &Arranged) -> Declared {
        let needs = arranged.needs.iter().map(|word| self.number(word)).collect::<Vec<_>>();
        let works = self.number(&works_on(name));
        let tasks = TaskList {
            weight: arranged.weight,
            paused: arranged.paused,
            spread: arranged.spread,
            needs: needs.into_iter().chain([works]).collect(),
            ..TaskList::new(arranged.partitions)
        };
        // Whoever drains a node means all of it: a pin to it waits until it is open again.
        let pins = arranged.pins.iter().filter(|(_, node)| !arranged.excluded.contains(*node));
        Declared {
            tasks,
            excluded: arranged.excluded.iter().cloned().collect(),
            pins: pins.map(|(number, node)| (*number, node.clone())).collect(),
        }
    }

    fn sighting(&mut self, record: WorkerRecord) -> Sighting {
        let WorkerRecord { node, session, pulse, document } = record;
        // Who cannot be understood gets nothing.
        let worker: Worker = serde_json::from_str(&document).unwrap_or_default();
        let labels: Vec<u32> = worker.labels.iter().map(|word| self.number(word)).collect();
        let works: Vec<u32> = worker.lists.iter().map(|list| self.number(&works_on(list))).collect();
        let labels: Labels = labels.into_iter().chain(works).collect();
        let zone = worker.zone.map_or(0, |zone| self.zones.of(&zone, self.survey));
        let zone = u16::try_from(zone).unwrap_or(u16::MAX);
        Sighting {
            node,
            session,
            pulse,
            member: Member { capacity: worker.capacity, zone, labels, ..Member::default() },
        }
    }

    fn number(&mut self, word: &str) -> u32 {
        self.words.of(word, self.survey)
    }

    fn forget_unused(&mut self) {
        for (name, arranged) in self.lists.values() {
            let Some(arranged) = arranged else { continue };
            for word in arranged.needs.iter().cloned().chain([works_on(name)]) {
                self.words.of(&word, self.survey);
            }
        }
        self.words.forget_before(self.survey);
        self.zones.forget_before(self.survey);
    }
}

/// No label of a node: those have a `=` after their key, and a key has no space in it.
fn works_on(list: &TaskListName) -> String {
    format!("works on {list}")
}

#[cfg(test)]
mod tests {
    use tenure_core::{NodeId, SessionId};
    use tenure_store::Survey;

    use super::*;

    fn survey(number: u64) -> Heard {
        let zone = Some(format!("zone-{number}"));
        let labels = [format!("host=run-{number}")].into();
        let document = Worker { zone, labels, ..Worker::default() }.write();
        let node = NodeId::new(format!("run-{number}")).unwrap();
        let session = SessionId::from_u128(number.into());
        let workers = vec![WorkerRecord { node, session, pulse: None, document }];
        Heard::Survey(Survey { revision: number, workers })
    }

    #[test]
    fn words_that_nobody_uses_any_more_are_forgotten_and_their_numbers_not_used_again() {
        let mut vocabulary = Vocabulary::default();
        let mut numbers = Vec::new();
        for number in 0..1000 {
            let Told::Survey { seen, .. } = vocabulary.told(survey(number)) else { panic!() };
            numbers.push(seen[0].member.zone);
        }
        assert!(vocabulary.words.by_word.len() <= 2 && vocabulary.zones.by_word.len() <= 1);
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 1000);
    }
}
