//! What a process costs, as the system tells it.

use std::time::Duration;

use super::Outcome;

/// The time that all of its threads have run.
pub fn cpu(pid: u32) -> Outcome<Duration> {
    let mut nanos = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let told = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanos += told.split(' ').next().unwrap_or_default().parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// The memory that it has, in KiB; what it shares with others is counted too.
pub fn resident(pid: u32) -> Outcome<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let told = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix(" kB"));
    Ok(told.ok_or("the system does not tell memory")?.trim().parse()?)
}
