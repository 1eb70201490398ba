//! A cargo command that is shown before it runs, in a form that a person can repeat.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

/// A call of cargo: its arguments, and what its environment needs beside ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cargo {
    environment: Vec<(&'static str, &'static str)>,
    args: Vec<String>,
}

impl Cargo {
    /// `cargo LINE`, where `LINE` is split at its spaces.
    pub fn new(line: &str) -> Self {
        Self { environment: Vec::new(), args: line.split_whitespace().map(str::to_owned).collect() }
    }

    /// The same call with more arguments, each taken as it is.
    pub fn with(mut self, args: &[String]) -> Self {
        self.args.extend_from_slice(args);
        self
    }

    /// The same call with a variable set.
    pub fn environment(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// Runs with our own standard streams and waits.
    pub fn run(&self) -> io::Result<ExitStatus> {
        self.command().status()
    }

    /// Runs, and answers with what it printed, or with what it complained about.
    pub fn output(&self) -> Result<String, String> {
        let output = self.command().output().map_err(|error| format!("cannot run `{self}`: {error}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!("`{self}` failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end()))
        }
    }

    /// Whether it runs and succeeds; it prints nothing.
    pub fn succeeds(&self) -> bool {
        let status = self.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    /// Runs as the whole chore: its exit code is ours.
    pub fn become_the_chore(&self) -> ExitCode {
        match self.run() {
            Ok(status) => exit_code(status),
            Err(error) => {
                eprintln!("xtask: cannot run `{self}`: {error}");
                ExitCode::FAILURE
            }
        }
    }

    /// The call, to be run with other streams.
    pub fn command(&self) -> Command {
        // The cargo that runs us, so that a `+toolchain` on the command line stays in force.
        let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command.args(&self.args).envs(self.environment.iter().copied());
        command
    }

    #[cfg(test)]
    pub fn has(&self, arg: &str) -> bool {
        self.args.iter().any(|own| own == arg)
    }
}

impl fmt::Display for Cargo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}={} ", quoted(value))?;
        }
        write!(f, "cargo")?;
        for arg in &self.args {
            write!(f, " {}", quoted(arg))?;
        }
        Ok(())
    }
}

/// `word` as a shell would have to see it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.,:+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    // No code means that a signal ended it.
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_shown_as_a_shell_would_take_it() {
        let call = Cargo::new("doc --no-deps").environment("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(call.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
        let call = Cargo::new("nextest run").with(&["it's".to_owned(), "test(=a)".to_owned()]);
        assert_eq!(call.to_string(), r"cargo nextest run 'it'\''s' 'test(=a)'");
    }
}
