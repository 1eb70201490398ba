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
    told(pid, "status", "VmRSS:")
}

/// The same, but of what several processes share, a share each: so that a sum over them counts it once.
pub fn proportional(pid: u32) -> Outcome<u64> {
    told(pid, "smaps_rollup", "Pss:")
}

fn told(pid: u32, file: &str, key: &str) -> Outcome<u64> {
    let told = std::fs::read_to_string(format!("/proc/{pid}/{file}"))?;
    let told = told.lines().find_map(|line| line.strip_prefix(key)?.strip_suffix(" kB"));
    Ok(told.ok_or("the system does not tell memory")?.trim().parse()?)
}
