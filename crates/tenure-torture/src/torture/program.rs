//! What is run. It starts a descendant that leaves its process group and session; both say every few
//! milliseconds under which term they are alive, on the clock that all processes of a machine share.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

use tenure_store::clock;

/// The word that makes this binary the program.
pub const WORD: &str = "program";
const DESCENDANT: &str = "descendant";

pub fn run(words: &[String]) -> ! {
    let [log, rest @ ..] = words else { std::process::exit(2) };
    let said = |name: &str| std::env::var(name).unwrap_or_default();
    let (term, node) = (said("TENURE_TERM"), said("TENURE_NODE"));
    let mut file = match OpenOptions::new().create(true).append(true).open(log) {
        Ok(file) => file,
        Err(_) => std::process::exit(2),
    };
    let mut say = || {
        let line = format!("{} {term} {node} {}\n", clock::now().as_nanos(), std::process::id());
        // One write, so that lines of several processes do not mix.
        let _ = file.write_all(line.as_bytes());
    };
    say();
    if rest.is_empty()
        && let Ok(me) = std::env::current_exe()
    {
        // Without it there is less to judge, and nothing wrong.
        let _ = Command::new("setsid").arg(me).args([WORD, log, DESCENDANT]).spawn();
    }
    loop {
        say();
        std::thread::sleep(Duration::from_millis(3));
    }
}
