//! A terminal that is painted again and again, and read key by key. Given back as it was.

use std::io::{self, Write};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::failure::Failure;

/// Another screen, no cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// What Ctrl-C and Ctrl-D send while the terminal does not act on them.
const CONTROL_C: u8 = 3;
const CONTROL_D: u8 = 4;

pub struct Screen {
    before: Termios,
    keys: UnboundedReceiver<u8>,
}

impl Screen {
    pub fn enter() -> Result<Self, Failure> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin).map_err(Failure::system)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw).map_err(Failure::system)?;
        // From here on it is given back, whatever happens.
        let (tell, keys) = unbounded_channel();
        let screen = Self { before, keys };
        // A thread of its own: reading a terminal cannot be cancelled, so nothing may wait for it.
        std::thread::spawn(move || {
            let mut key = [0];
            while let Ok(1) = io::Read::read(&mut io::stdin(), &mut key) {
                if tell.send(key[0]).is_err() {
                    return;
                }
            }
        });
        write!(io::stdout(), "{ENTER}")?;
        Ok(screen)
    }

    /// The next key; `None` once the terminal is gone, or somebody wants to leave.
    ///
    /// # Cancel safety
    /// Safe: keys are kept until they are asked for.
    pub async fn key(&mut self) -> Option<char> {
        match self.keys.recv().await? {
            CONTROL_C | CONTROL_D | b'q' => None,
            key => Some(char::from(key).to_ascii_lowercase()),
        }
    }

    /// Columns and rows.
    pub fn size() -> (usize, usize) {
        let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        size.map_or((80, 24), |size| (usize::from(size.ws_col), usize::from(size.ws_row)))
    }

    /// Paints these lines, as far as there is room.
    pub fn paint(&self, lines: &[String]) -> Result<(), Failure> {
        let (columns, rows) = Self::size();
        // NO_COLOR takes the colours away, not the screen.
        let plain = anstream::AutoStream::choice(&io::stdout()) == anstream::ColorChoice::Never;
        let mut picture = String::from("\x1b[H");
        for (index, line) in lines.iter().take(rows).enumerate() {
            if index > 0 {
                picture.push_str("\r\n");
            }
            let line = if plain { anstream::adapter::strip_str(line).to_string() } else { line.clone() };
            picture.push_str(&fit(&line, columns));
            picture.push_str("\x1b[0m\x1b[K");
        }
        picture.push_str("\x1b[J");
        let mut out = io::stdout().lock();
        out.write_all(picture.as_bytes())?;
        Ok(out.flush()?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write!(io::stdout(), "{LEAVE}").and_then(|()| io::stdout().flush());
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// As much of a line as fits. Colours take no room, and are kept whole.
fn fit(line: &str, columns: usize) -> String {
    let (mut fitted, mut room, mut escape) = (String::new(), columns, false);
    for c in line.chars() {
        let visible = !escape && c != '\x1b';
        if c == '\x1b' {
            escape = true;
        } else if escape && c.is_ascii_alphabetic() {
            escape = false;
        }
        if visible && room == 0 {
            continue;
        }
        room -= usize::from(visible);
        fitted.push(c);
    }
    fitted
}

/// A bar that is filled as far as `part` of `whole`.
pub fn bar(part: f64, whole: f64, columns: usize) -> String {
    let share = if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "0 to columns"
    )]
    let full = (share * columns as f64).round() as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(columns - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_the_screen_ends_and_its_colours_are_ended() {
        assert_eq!(fit("abcdef", 3), "abc");
        assert_eq!(fit("\x1b[31mabcdef\x1b[0m", 3), "\x1b[31mabc\x1b[0m");
        assert_eq!(fit("Größe", 10), "Größe");
    }

    #[test]
    fn a_bar_is_as_full_as_what_it_shows() {
        assert_eq!(bar(1.0, 2.0, 4), "██░░");
        assert_eq!([bar(0.0, 0.0, 2), bar(9.0, 2.0, 2)], ["░░", "██"]);
    }
}
