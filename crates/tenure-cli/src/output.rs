//! What people and programs read: aligned tables, JSON lines, relative times.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::failure::Failure;

pub const GOOD: Style = AnsiColor::Green.on_default();
pub const BAD: Style = AnsiColor::Red.on_default();
pub const FAINT: Style = Style::new().dimmed();
pub const HEAD: Style = Style::new().bold();

/// Text in a style; without it where stdout is no terminal, or NO_COLOR is set.
pub fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Text that somebody else chose, without what would take a terminal over.
pub fn harmless(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_unicode().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// Prints a line.
pub fn say(line: impl std::fmt::Display) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Prints a line on stderr. The terminal may be gone, and that changes nothing.
pub fn complain(line: &str) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Tells on stderr how a wait goes, in the language of the output.
pub fn notice(as_json: bool, text: &str) {
    match as_json {
        true => complain(&serde_json::json!({"notice": text}).to_string()),
        false => complain(&format!("tenure: {text}")),
    }
}

/// Whether whoever read our output is gone. A stream finds that out by writing, but it may be long
/// until there is something to write: `tenure events --follow | head -1` shall end with `head`.
pub fn unread() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = io::stdout();
    let mut source = [PollFd::new(&stdout, PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    poll(&mut source, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok()
        && source[0].revents().intersects(gone)
}

/// Prints an object on a line of its own.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    say(serde_json::to_string(value).map_err(Failure::system)?)
}

/// A table whose columns are as wide as their widest cell.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|cell| styled(HEAD, cell)).collect()] }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub fn print(&self) -> Result<(), Failure> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0)
            })
            .collect();
        let mut out = io::BufWriter::new(anstream::stdout().lock());
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                line.push_str(cell);
                if column + 1 < row.len() {
                    line.push_str(&" ".repeat(widths[column] - width(cell) + 2));
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(out.flush()?)
    }
}

/// What a cell takes on the screen.
fn width(cell: &str) -> usize {
    anstream::adapter::strip_str(cell).to_string().chars().count()
}

/// A length of time as people say it: `6.9s`, `250ms`, `2h 5m`.
pub fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 if time.as_millis() < 10 => format!("{:.1}ms", time.as_secs_f64() * 1e3),
        0 => format!("{}ms", time.as_millis()),
        1..60 => format!("{:.1}s", time.as_secs_f64()),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86400, seconds % 86400 / 3600),
    }
}

/// A moment as people say it: `6.9s ago`.
pub fn ago(moment: SystemTime) -> String {
    match SystemTime::now().duration_since(moment) {
        Ok(age) => format!("{} ago", length(age)),
        Err(early) if early.duration() < Duration::from_secs(1) => String::from("now"),
        Err(early) => format!("in {}", length(early.duration())),
    }
}

/// A moment at the start of a line: UTC, RFC 3339, as exact as people read it.
pub fn moment(moment: SystemTime) -> String {
    humantime::format_rfc3339_millis(moment).to_string()
}

/// A moment as programs read it: UTC, RFC 3339.
pub fn timestamp(moment: SystemTime) -> String {
    humantime::format_rfc3339_micros(moment).to_string()
}

pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        let said = |millis| length(Duration::from_millis(millis));
        assert_eq!([said(3), said(250), said(6900)], ["3.0ms", "250ms", "6.9s"]);
        assert_eq!([said(125_000), said(7_500_000), said(90_000_000)], ["2m 5s", "2h 5m", "1d 1h"]);
    }

    #[test]
    fn what_others_have_written_cannot_take_the_terminal_over() {
        assert_eq!(harmless("Größe 7"), "Größe 7");
        assert_eq!(harmless("a\u{1b}[2Jb\u{9b}c\n"), "a\\u{1b}[2Jb\\u{9b}c\\u{a}");
    }

    #[test]
    fn colours_take_no_room() {
        assert_eq!(width(&styled(GOOD, "alpha")), 5);
    }
}
