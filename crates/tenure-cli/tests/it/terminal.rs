//! A terminal, which `script` gives to a command.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use tenure_testkit::patience::until;

/// The command in a terminal.
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    painted: Arc<Mutex<String>>,
}

impl Terminal {
    pub fn run(line: &str, change: impl FnOnce(&mut Command)) -> Self {
        Self::sized(80, 24, line, change)
    }

    pub fn sized(columns: u32, rows: u32, line: &str, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new("script");
        let size = format!("stty cols {columns} rows {rows}");
        command.args([
            "-qefc",
            &format!("{size}; exec {} {line}", env!("CARGO_BIN_EXE_tenure")),
            "/dev/null",
        ]);
        command.env("NO_COLOR", "1").env("TERM", "xterm");
        change(&mut command);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (keys, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let painted = Arc::new(Mutex::new(String::new()));
        let paints = Arc::clone(&painted);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                paints.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { child, keys, painted }
    }

    /// Waits until the picture that is painted has all of these in it.
    pub fn shows(&self, parts: &[&str]) {
        until(&format!("it shows {parts:?}"), || self.has_shown(parts));
    }

    pub fn has_shown(&self, parts: &[&str]) -> bool {
        let painted = self.painted.lock().unwrap();
        // Every picture begins where the screen does.
        let mut pictures = painted.split("\x1b[H");
        pictures.any(|picture| parts.iter().all(|part| picture.contains(part)))
    }

    pub fn press(&mut self, key: &str) {
        self.keys.write_all(key.as_bytes()).unwrap();
    }

    pub fn quit(mut self) {
        self.press("q");
        let status = until("it ends", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
