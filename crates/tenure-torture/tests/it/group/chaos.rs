//! Faults in an order that a seed decides, one after the other and several at once, and then the verdict.
//! `cargo xtask torture --chaos` does the same at length, with a seed of its own.

use std::time::Duration;

use tenure_core::Dice;
use tenure_testkit::patience::patiently;

use super::crew::Crew;

const TTL: Duration = Duration::from_secs(1);
/// Several groups at once, each with its own faults: most of their time is spent waiting.
const GROUPS: u64 = 4;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// `TENURE_FAULTS` says how many faults over all groups, `TENURE_SEED` which: by default always the same.
#[test]
fn under_random_faults_no_two_lead_at_once_and_afterwards_somebody_does() {
    let (faults, seed) = (setting("TENURE_FAULTS", 100), setting("TENURE_SEED", 19));
    eprintln!("TENURE_SEED={seed} TENURE_FAULTS={faults}");
    let suffer = |group| std::thread::spawn(move || suffer(faults / GROUPS, seed.wrapping_add(group)));
    let groups: Vec<_> = (0..GROUPS).map(suffer).collect();
    groups.into_iter().for_each(|group| group.join().unwrap());
}

fn suffer(faults: u64, seed: u64) {
    let mut dice = Dice::new(seed);
    let mut crew = Crew::of_three(TTL);
    let mut left = faults;
    while left > 0 {
        left -= u64::from(strike(&mut crew, &mut dice));
        std::thread::sleep(Duration::from_millis(dice.below(800)));
    }
    crew.lan.heal();
    for machine in 0..3 {
        if crew.is_stopped(machine) {
            crew.go_on(machine);
        }
        if !crew.lives(machine) {
            crew.start(machine);
        }
    }
    let last = crew.ask(async |store| {
        use tenure::Store as _;
        let election = tenure::ElectionName::new(super::ELECTION).unwrap();
        patiently(async || store.read(election.clone()).await).await.value.term.number()
    });
    crew.leader_above(last.saturating_sub(1));
    let leaderships = crew.verdict();
    eprintln!("{} leaderships, terms up to {last}", leaderships.len());
}

/// Harms one machine, or lets it or all of them recover. Whether it was harm.
fn strike(crew: &mut Crew, dice: &mut Dice) -> bool {
    let machine = usize::try_from(dice.below(3)).unwrap();
    let (lives, stopped) = (crew.lives(machine), crew.is_stopped(machine));
    match dice.below(10) {
        0 | 1 if lives => crew.kill(machine),
        2 if lives && !stopped => crew.stop(machine),
        4 => crew.lan.part(&[crew.machine(machine)]),
        5 => crew.machine(machine).mute(),
        6 => crew.machine(machine).deafen(),
        well => {
            match well {
                0..=3 if !lives => drop(crew.start(machine)),
                3 if stopped => crew.go_on(machine),
                _ => crew.lan.heal(),
            }
            return false;
        }
    }
    true
}
