//! Something that nobody else has: the standard library's hashers are seeded by the system.

use std::hash::{BuildHasher, RandomState};

pub(crate) fn hexadecimal() -> String {
    let random = || RandomState::new().hash_one("tenure");
    format!("{:016x}{:016x}", random(), random())
}
