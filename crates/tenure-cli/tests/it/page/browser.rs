//! Debian's Chromium without a window, driven over its DevTools protocol, through a pair of pipes.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use base64::Engine;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;
use tenure_testkit::patience::HANG;

/// A browser with one page. Killed when dropped, with all its processes.
pub struct Browser {
    child: Child,
    orders: ChildStdin,
    answers: Receiver<Value>,
    session: String,
    last: u64,
    /// What went wrong in the page, by the browser's own account.
    pub complaints: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    pub fn open(url: &str) -> Self {
        let profile = TempDir::new().unwrap();
        // It reads orders from descriptor 3, and answers on 4.
        let line = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
             --disable-background-networking --remote-debugging-pipe --user-data-dir=\"$1\" about:blank \
             3<&0 4>&1 >/dev/null 2>&1";
        let mut command = Command::new("sh");
        command.args(["-c", line, "sh"]).arg(profile.path()).env("HOME", profile.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap();
        let (orders, said) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, answers) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(said).split(0).map_while(Result::ok) {
                let _ = tell.send(serde_json::from_slice(&message).unwrap());
            }
        });
        let (session, complaints) = (String::new(), Vec::new());
        let mut browser = Self { child, orders, answers, session, last: 0, complaints, _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = json!({"targetId": target["targetId"], "flatten": true});
        browser.session =
            browser.call("Target.attachToTarget", attached)["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Page.navigate", json!({"url": url}));
        browser
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut order = json!({"id": self.last, "method": method, "params": params});
        if !self.session.is_empty() {
            order["sessionId"] = json!(self.session);
        }
        self.orders.write_all(format!("{order}\0").as_bytes()).unwrap();
        loop {
            let answer =
                self.answers.recv_timeout(HANG).expect("the browser answers; is `chromium` installed?");
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            let told = match answer["method"].as_str() {
                Some("Runtime.exceptionThrown") => &answer["params"]["exceptionDetails"],
                Some("Log.entryAdded") if answer["params"]["entry"]["level"] == "error" => {
                    &answer["params"]["entry"]
                }
                _ => continue,
            };
            self.complaints.push(told.to_string());
        }
    }

    /// What an expression is in the page; a promise is waited for.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        self.call("Runtime.evaluate", params)["result"]["value"].clone()
    }

    pub fn text(&mut self, selector: &str) -> String {
        let expression = format!("document.querySelector({})?.textContent ?? ''", json!(selector));
        self.value(&expression).as_str().unwrap_or_default().to_owned()
    }

    /// Keeps a picture of the page as it is, for people to look at.
    pub fn picture(&mut self, name: &str, width: u32, height: u32, scheme: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", features);
        let taken = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let picture =
            base64::engine::general_purpose::STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
        // Beside what else the build leaves: it is no part of the sources.
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join(format!("{name}.png")), picture).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
