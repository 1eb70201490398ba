//! Where and with what it was measured.

use std::process::Command;

use tenure_testkit::others;

use crate::common::Outcome;

/// Packages of Debian that take part.
const PACKAGES: [&str; 8] = [
    "postgresql-15",
    "mariadb-server",
    "zookeeper",
    "libcurator-recipes-java",
    "python3-kazoo",
    "etcd-server",
    "golang-etcd-server-dev",
    "erlang-base",
];
/// Those of the Python environment.
const PYTHON: [&str; 2] = ["tooz", "kazoo"];

pub struct Machine {
    pub date: String,
    pub hardware: String,
    pub system: String,
    /// What took part, with its version.
    pub versions: Vec<String>,
}

impl Machine {
    pub fn look() -> Outcome<Self> {
        let processor = field("/proc/cpuinfo", "model name", ':')?;
        let memory: u64 = field("/proc/meminfo", "MemTotal", ':')?.trim_end_matches(" kB").parse()?;
        let cores = std::thread::available_parallelism()?;
        let kernel = told(Command::new("uname").arg("-r"))?;
        let system = field("/etc/os-release", "PRETTY_NAME", '=')?;
        let mut versions = vec![format!("Tenure {}", env!("CARGO_PKG_VERSION"))];
        let query = "-f=${Package} ${Version}\n";
        let debian = told(Command::new("dpkg-query").args(["-W", query]).args(PACKAGES))?;
        versions.extend(debian.lines().map(str::to_owned));
        let java = told(Command::new("java").arg("--version"))?;
        versions.push(java.lines().next().unwrap_or_default().to_owned());
        let pip =
            told(Command::new(others::environment().join("bin/pip")).args(["list", "--format=freeze"]))?;
        let wanted = |line: &&str| PYTHON.iter().any(|name| line.split("==").next() == Some(*name));
        let pypi = |line: &str| format!("{} (PyPI)", line.replace("==", " "));
        versions.extend(pip.lines().filter(wanted).map(pypi));
        Ok(Self {
            date: told(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]))?,
            hardware: format!("{cores} cores of {processor}, {} GiB", memory >> 20),
            system: format!("{}, Linux {kernel}", system.trim_matches('"')),
            versions,
        })
    }
}

fn field(file: &str, name: &str, separator: char) -> Outcome<String> {
    let text = std::fs::read_to_string(file)?;
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(separator));
    Ok(found.ok_or_else(|| format!("{file} has no {name}"))?.trim().to_owned())
}

fn told(command: &mut Command) -> Outcome<String> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
