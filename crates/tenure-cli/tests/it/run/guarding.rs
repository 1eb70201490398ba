//! The guardian alone: these tests are its supervisor.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::net::sockopt::set_socket_send_buffer_size;
use serde_json::{Value, json};
use tempfile::TempDir;
use tenure_store::clock;

use super::stage::{children, lives, until};

/// A guardian whose reports nobody reads. Killed when dropped, and what it guards with it.
struct Guardian {
    process: Child,
    orders: UnixStream,
    directory: TempDir,
}

impl Guardian {
    fn start() -> Self {
        let (orders, theirs) = UnixStream::pair().unwrap();
        // The system rounds it up to the least that it allows: a few reports.
        set_socket_send_buffer_size(&theirs, 1).unwrap();
        // A copy that survives exec.
        let passed = rustix::io::dup(&theirs).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_tenure"))
            .args(["__guardian", &passed.as_raw_fd().to_string()])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let directory = TempDir::new().unwrap();
        let mut guardian = Self { process, orders, directory };
        let second = json!({"secs": 1, "nanos": 0});
        guardian.order(&json!({"Hello": {
            "supervisor": std::process::id(), "group": 0, "store": "memory:", "namespace": "default",
            "patience": second, "grace": second, "cgroup": false, "several": true,
        }}));
        guardian
    }

    fn order(&mut self, order: &Value) {
        self.orders.write_all(format!("{order}\n").as_bytes()).unwrap();
    }

    fn file(&self, ward: u64) -> PathBuf {
        self.directory.path().join(ward.to_string())
    }

    /// Starts a program that writes its number into a file.
    fn start_program(&mut self, ward: u64, until: u64) {
        let script = format!("echo $$ > {}; exec sleep 600", self.file(ward).display());
        let program: Vec<&[u8]> = ["/bin/sh", "-c", &script].map(str::as_bytes).to_vec();
        let held = json!({"session": [0, 1], "until": until});
        self.order(&json!({"Start": {"ward": ward, "program": program, "environment": [], "held": held}}));
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        let keepers = children(self.process.id());
        let _ = self.process.kill();
        let _ = self.process.wait();
        until("its keepers are gone", || keepers.iter().all(|keeper| !lives(*keeper)));
    }
}

#[test]
fn programs_are_ended_in_time_also_if_the_supervisor_reads_no_reports() {
    const PROGRAMS: u64 = 40;
    let mut guardian = Guardian::start();
    let later = clock::now().as_nanos() + 3_600_000_000_000;
    for ward in 1..=PROGRAMS {
        guardian.start_program(ward, later);
    }
    let programs: Vec<u32> = (1..=PROGRAMS)
        .map(|ward| {
            until(&format!("program {ward} runs"), || {
                let text = std::fs::read_to_string(guardian.file(ward)).ok()?;
                text.strip_suffix('\n')?.parse().ok()
            })
        })
        .collect();
    // The session is over.
    guardian.order(&json!({"Held": {"session": null, "until": 0}}));
    until("all programs are gone", || programs.iter().all(|program| !lives(*program)));
}
