//! Bytes from outside, and what becomes of them: whatever comes, a parser answers, and never panics.
//!
//! A target is given samples that are right, and gets them bent at random: the same for the same seed. Every test run
//! has a short one; `TENURE_FUZZ=5000000 cargo nextest run fuzz` is a long one.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tenure_core::Dice;

/// How many of each, unless `TENURE_FUZZ` wants more.
const USUALLY: u64 = 20_000;

/// What parsers stumble over.
const ODD: [&[u8]; 18] = [
    b"\0",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80",
    b"-1",
    b"18446744073709551616",
    b"9223372036854775807",
    b"1e999",
    b"%",
    b"%00",
    b"%zz",
    b"://",
    b"@",
    b"[::1]",
    b"?",
    b"\r\n\r\n",
    b"\xe2\x80\xae",
    b"{\"\":[[[[",
];

/// Gives `target` the samples, and bent ones.
///
/// # Panics
/// If the target does, after saying with which bytes.
pub fn fuzz(samples: &[&[u8]], target: impl FnMut(&[u8])) {
    fuzz_times(USUALLY, samples, target);
}

/// The same for a target that takes its time: so many, or as many as `TENURE_FUZZ` says if that is more.
///
/// # Panics
/// As [`fuzz`].
pub fn fuzz_times(count: u64, samples: &[&[u8]], mut target: impl FnMut(&[u8])) {
    let asked = std::env::var("TENURE_FUZZ").ok().and_then(|count| count.parse().ok());
    let mut dice = Dice::new(0x7e_u64);
    for number in 0..asked.unwrap_or(0).max(count) {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let bytes = match samples.get(index) {
            Some(sample) => sample.to_vec(),
            None => bent(samples, &mut dice),
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&bytes))) {
            eprintln!("number {number} did it: {}", bytes.escape_ascii());
            resume_unwind(panic);
        }
    }
}

/// The same with text.
///
/// # Panics
/// As [`fuzz`].
pub fn fuzz_text(samples: &[&str], mut target: impl FnMut(&str)) {
    let samples: Vec<&[u8]> = samples.iter().map(|sample| sample.as_bytes()).collect();
    fuzz(&samples, |bytes| target(&String::from_utf8_lossy(bytes)));
}

fn bent(samples: &[&[u8]], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = pick(samples, dice).map_or_else(Vec::new, <[u8]>::to_vec);
    for _ in 0..=dice.below(4) {
        let at = below(dice, bytes.len() + 1);
        match dice.below(7) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            2 if at < bytes.len() => bytes[at] = byte(dice),
            3 => bytes.insert(at, byte(dice)),
            4 => drop(bytes.drain(at..bytes.len().min(at + 1 + below(dice, 8)))),
            5 => drop(bytes.splice(at..at, pick(&ODD, dice).unwrap_or_default().iter().copied())),
            // The end of another one.
            _ => {
                let other = pick(samples, dice).unwrap_or_default();
                bytes.truncate(at);
                bytes.extend_from_slice(&other[below(dice, other.len() + 1)..]);
            }
        }
    }
    bytes
}

fn pick<'a>(samples: &[&'a [u8]], dice: &mut Dice) -> Option<&'a [u8]> {
    samples.get(below(dice, samples.len())).copied()
}

fn below(dice: &mut Dice, bound: usize) -> usize {
    usize::try_from(dice.below(bound as u64)).unwrap_or(0)
}

fn byte(dice: &mut Dice) -> u8 {
    u8::try_from(dice.below(256)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_first_as_they_are_and_then_bent_in_every_way() {
        let (mut whole, mut shorter, mut longer) = (0, 0, 0);
        fuzz(&[b"postgres://host/name"], |bytes| match bytes.len() {
            20 => whole += 1,
            length if length < 20 => shorter += 1,
            _ => longer += 1,
        });
        assert!(whole > 100 && shorter > 1000 && longer > 1000, "{whole} {shorter} {longer}");
    }

    #[test]
    #[should_panic(expected = "a number has no such digit")]
    fn a_target_that_panics_is_found() {
        fuzz_text(&["port=5432"], |text| {
            let value = text.split_once('=').map_or("0", |(_, value)| value);
            let digits = value.chars().all(|digit| digit.is_ascii_digit());
            assert!(digits, "a number has no such digit");
        });
    }
}
