//! Makes a failing run small: leaves out faults as long as it still fails.

use tenure_core::Plant;

use crate::config::Config;
use crate::fault::Fault;
use crate::run::run;

/// The smallest schedule found that still breaks a promise.
#[must_use]
pub fn shrink(config: &Config, plant: Option<Plant>) -> Config {
    let mut best = config.clone();
    let fails = |config: &Config| run(config.clone(), plant, false).violation.is_some();
    let mut chunk = best.faults.len().div_ceil(2).max(1);
    loop {
        let mut smaller = false;
        let mut start = 0;
        while start < best.faults.len() {
            let mut faults: Vec<Fault> = best.faults.clone();
            faults.drain(start..(start + chunk).min(faults.len()));
            let candidate = Config { faults, ..best.clone() };
            if fails(&candidate) {
                best = candidate;
                smaller = true;
            } else {
                start += chunk;
            }
        }
        if chunk == 1 && !smaller {
            return best;
        }
        chunk = (chunk / 2).max(1);
    }
}
