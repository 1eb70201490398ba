//! What is alike is treated together: partitions of one *kind* may be on the same members and weigh the
//! same, members of one *class* may have the same partitions. There are few of both, however
//! many partitions and members there are.

use std::collections::BTreeMap;

use crate::partitions::member::{Labels, Member, Readiness};
use crate::partitions::tasks::TaskList;

/// Partitions that are alike.
#[derive(Debug)]
pub(super) struct Kind {
    pub weight: u64,
    /// Which classes may own them.
    pub classes: Vec<usize>,
    /// Which members may own them, as the members are configured.
    pub fits: Vec<bool>,
    /// How many members may get them.
    pub open: usize,
    /// For a task list that is spread, which is a kind of its own: the most that a zone gets.
    pub zone_limit: Option<u32>,
}

/// Members that are alike.
#[derive(Debug)]
pub(super) struct Class {
    pub zone: usize,
    /// Those that take and give.
    pub open: Vec<u32>,
    /// Whether they all have the same capacity.
    pub even: bool,
}

/// Kinds and classes.
#[derive(Debug)]
pub(super) struct Groups {
    pub kinds: Vec<Kind>,
    pub kind_of: Vec<usize>,
    pub classes: Vec<Class>,
    pub class_of: Vec<usize>,
    pub zones: usize,
}

/// Who may own: the labels that are needed, and who is excluded.
type Rule = (Labels, Vec<u32>);

impl Groups {
    pub fn new(lists: &[TaskList], members: &[Member]) -> Self {
        let (rules, rule_of) = rules(lists);
        let fits: Vec<Vec<bool>> = rules.iter().map(|rule| fits(rule, members)).collect();
        let spread = lists.iter().any(|list| list.spread);
        let (zone_of, zones) = zones(members, spread);
        let (classes, class_of) = classes(members, &fits, &zone_of);
        let mut kinds: Vec<Kind> = Vec::new();
        let mut known: BTreeMap<(usize, u64, Option<usize>), usize> = BTreeMap::new();
        let mut kind_of = Vec::with_capacity(lists.len());
        for (index, list) in lists.iter().enumerate() {
            let rule = rule_of[index];
            let key = (rule, list.weight(), list.spread.then_some(index));
            kind_of.push(*known.entry(key).or_insert_with(|| {
                let fits = &fits[rule];
                let may = |class: &Class| class.open.first().is_some_and(|first| fits[*first as usize]);
                let may: Vec<usize> = (0..classes.len()).filter(|class| may(&classes[*class])).collect();
                kinds.push(Kind {
                    weight: list.weight(),
                    open: may.iter().map(|class| classes[*class].open.len()).sum(),
                    classes: may,
                    fits: fits.clone(),
                    zone_limit: list.spread.then(|| zone_limit(list, members, fits, &zone_of, zones)),
                });
                kinds.len() - 1
            }));
        }
        Self { kinds, kind_of, classes, class_of, zones }
    }

    pub fn zone(&self, member: u32) -> usize {
        self.classes[self.class_of[member as usize]].zone
    }
}

fn rules(lists: &[TaskList]) -> (Vec<Rule>, Vec<usize>) {
    let mut known: BTreeMap<Rule, usize> = BTreeMap::new();
    let mut of = Vec::with_capacity(lists.len());
    for list in lists {
        let mut excluded = list.excluded.clone();
        excluded.sort_unstable();
        let next = known.len();
        of.push(*known.entry((list.needs.clone(), excluded)).or_insert(next));
    }
    let mut rules: Vec<(Rule, usize)> = known.into_iter().collect();
    rules.sort_unstable_by_key(|(_, index)| *index);
    (rules.into_iter().map(|(rule, _)| rule).collect(), of)
}

fn fits((needs, excluded): &Rule, members: &[Member]) -> Vec<bool> {
    let fits = |(index, member): (u32, &Member)| {
        member.capacity > 0 && member.labels.satisfy(needs) && excluded.binary_search(&index).is_err()
    };
    (0..).zip(members).map(fits).collect()
}

/// The zone of each member, numbered from 0, and how many there are. All the same if nobody asks.
fn zones(members: &[Member], spread: bool) -> (Vec<usize>, usize) {
    if !spread {
        return (vec![0; members.len()], 1);
    }
    let mut names: Vec<u16> = members.iter().map(|member| member.zone).collect();
    names.sort_unstable();
    names.dedup();
    let number = |member: &Member| names.binary_search(&member.zone).unwrap_or(0);
    (members.iter().map(number).collect(), names.len())
}

fn classes(members: &[Member], fits: &[Vec<bool>], zone_of: &[usize]) -> (Vec<Class>, Vec<usize>) {
    let mut known: BTreeMap<(usize, Vec<u64>), usize> = BTreeMap::new();
    let mut classes: Vec<Class> = Vec::new();
    let mut class_of = Vec::with_capacity(members.len());
    for (index, member) in members.iter().enumerate() {
        let mut signature = vec![0u64; fits.len().div_ceil(64)];
        for (rule, fits) in fits.iter().enumerate() {
            signature[rule / 64] |= u64::from(fits[index]) << (rule % 64);
        }
        let class = *known.entry((zone_of[index], signature)).or_insert_with(|| {
            classes.push(Class { zone: zone_of[index], open: Vec::new(), even: true });
            classes.len() - 1
        });
        if member.readiness == Readiness::Open && member.capacity > 0 {
            let class = &mut classes[class];
            let first = class.open.first().map_or(member.capacity, |first| members[*first as usize].capacity);
            class.even &= first == member.capacity;
            class.open.push(u32::try_from(index).unwrap_or(u32::MAX));
        }
        class_of.push(class);
    }
    (classes, class_of)
}

/// An even part for each zone in which anybody may own the task list, rounded up.
fn zone_limit(list: &TaskList, members: &[Member], fits: &[bool], zone_of: &[usize], zones: usize) -> u32 {
    let mut there = vec![false; zones];
    for (index, member) in members.iter().enumerate() {
        if fits[index] && member.readiness != Readiness::Draining {
            there[zone_of[index]] = true;
        }
    }
    let zones = there.iter().filter(|there| **there).count();
    list.partitions.div_ceil(u32::try_from(zones).unwrap_or(u32::MAX).max(1))
}
