//! Finds out what the checks need, installs what is missing, and says so.
//!
//! A newcomer's first command is `cargo xtask test`; it has to work on a bare machine, and must
//! leave nothing running there.

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::cargo::Cargo;

/// A program that comes from Debian packages.
struct Need {
    program: &'static str,
    packages: &'static [&'static str],
    why: &'static str,
}

const NEEDS: [Need; 4] = [
    // Without libc6-dev, gcc compiles but cannot link; apt only recommends it.
    Need { program: "cc", packages: &["gcc", "libc6-dev"], why: "compiles the bundled SQLite" },
    Need { program: "sqlite3", packages: &["sqlite3"], why: "reads the store's file from outside, in tests" },
    Need { program: "initdb", packages: &["postgresql-15"], why: "a server of our own, in tests" },
    Need {
        program: "faketime",
        packages: &["faketime"],
        why: "steps the wall clock of single processes, in tests",
    },
];

/// apt asks this program whether it may start a service.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const APT_INSTALL: &str = include_str!("apt-install.sh");

/// The chore `cargo xtask setup`.
pub fn run() -> ExitCode {
    match install() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Installs what is needed and missing.
pub fn install() -> Result<(), String> {
    let installed = install_packages()? | install_components()? | install_nextest()?;
    if !installed {
        println!("everything needed is installed");
    }
    Ok(())
}

fn install_packages() -> Result<bool, String> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !need.is_met()).collect();
    if missing.is_empty() {
        return Ok(false);
    }
    let packages: Vec<&str> = missing.iter().flat_map(|need| need.packages).copied().collect();
    let by_hand = format!("apt-get install -y --no-install-recommends {}", packages.join(" "));
    if !on_path("apt-get") {
        let programs: Vec<&str> = missing.iter().map(|need| need.program).collect();
        return Err(format!(
            "{} missing, and this is not Debian: install it with your package manager (on Debian: {by_hand})",
            programs.join(" and ")
        ));
    }
    let Some(mut shell) = root_shell() else {
        return Err(format!("root is needed to install packages; run this yourself: sudo {by_hand}"));
    };
    for need in missing {
        println!("installing Debian package {}: {}", need.packages.join(" and "), need.why);
    }
    if Path::new(POLICY).exists() {
        println!("(leaving {POLICY} as it is: it decides whether a service is started)");
    }
    succeed(shell.args(["-c", APT_INSTALL, "apt-install", POLICY]).args(packages), &by_hand)?;
    Ok(true)
}

impl Need {
    /// Either is enough: the program may be there without Debian, or outside of our PATH.
    fn is_met(&self) -> bool {
        on_path(self.program) || self.packages.iter().all(|package| is_installed(package))
    }
}

fn is_installed(package: &str) -> bool {
    let query =
        Command::new("dpkg-query").args(["-W", "-f=${Status}", package]).stderr(Stdio::null()).output();
    query.is_ok_and(|output| output.stdout == b"install ok installed")
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// A shell that may install packages, if we can have one without asking for a password.
fn root_shell() -> Option<Command> {
    let id = Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() == b"0" {
        return Some(Command::new("sh"));
    }
    let sudo = Command::new("sudo").args(["-n", "true"]).stderr(Stdio::null()).status();
    if !sudo.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut shell = Command::new("sudo");
    shell.args(["-n", "sh"]);
    Some(shell)
}

fn install_components() -> Result<bool, String> {
    let mut installed = false;
    for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if Cargo::new(&format!("{tool} --version")).succeeds() {
            continue;
        }
        let by_hand = format!("rustup component add {component}");
        if !on_path("rustup") {
            return Err(format!(
                "`cargo {tool}` is missing, and so is rustup: install {component} the way you installed Rust \
                 (with rustup: {by_hand}; on Debian: apt-get install {})",
                if component == "clippy" { "rust-clippy" } else { component }
            ));
        }
        println!("installing Rust component {component}");
        succeed(Command::new("rustup").args(["component", "add", component]), &by_hand)?;
        installed = true;
    }
    Ok(installed)
}

fn install_nextest() -> Result<bool, String> {
    if Cargo::new("nextest --version").succeeds() {
        return Ok(false);
    }
    println!("installing cargo tool cargo-nextest: it runs the tests (once; takes some minutes)");
    let install = Cargo::new("install --locked cargo-nextest");
    match install.run() {
        Ok(status) if status.success() => Ok(true),
        Ok(status) => Err(format!("`{install}` failed ({status}); run it yourself to see why")),
        Err(error) => Err(format!("cannot run `{install}`: {error}")),
    }
}

fn succeed(command: &mut Command, by_hand: &str) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the installation failed ({status}); by hand: {by_hand}")),
        Err(error) => Err(format!("cannot start the installation: {error}; by hand: {by_hand}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    /// A directory with an `apt-get` of its own, which notes each call and asks the policy.
    struct FakeDebian(PathBuf);

    impl FakeDebian {
        fn new(name: &str, exit: u8) -> Self {
            let directory = env::temp_dir().join(format!("tenure-xtask-{}-{name}", std::process::id()));
            fs::create_dir_all(&directory).unwrap();
            let apt = directory.join("apt-get");
            let script = format!(
                "#!/bin/sh\nset +e\n{0}/policy; echo \"$? $*\" >>{0}/calls\n[ $1 = update ] || exit {exit}\n",
                directory.display()
            );
            fs::write(&apt, script).unwrap();
            fs::set_permissions(&apt, fs::Permissions::from_mode(0o755)).unwrap();
            Self(directory)
        }

        fn install(&self, packages: &[&str]) -> bool {
            self.install_under(&self.policy(), packages)
        }

        fn install_under(&self, policy: &Path, packages: &[&str]) -> bool {
            let path = format!("{}:{}", self.0.display(), env::var("PATH").unwrap());
            let mut shell = Command::new("sh");
            shell.env("PATH", path).args(["-c", APT_INSTALL, "apt-install"]).arg(policy).args(packages);
            shell.status().unwrap().success()
        }

        fn policy(&self) -> PathBuf {
            self.0.join("policy")
        }

        fn calls(&self) -> String {
            fs::read_to_string(self.0.join("calls")).unwrap()
        }
    }

    impl Drop for FakeDebian {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn services_are_refused_while_packages_are_installed_and_allowed_again_after() {
        let debian = FakeDebian::new("refused", 0);
        assert!(debian.install(&["gcc", "sqlite3"]));
        assert_eq!(debian.calls(), "101 update\n101 install -y --no-install-recommends gcc sqlite3\n");
        assert!(!debian.policy().exists());
    }

    #[test]
    fn the_policy_is_removed_when_the_installation_fails() {
        let debian = FakeDebian::new("fails", 100);
        assert!(!debian.install(&["sqlite3"]));
        assert!(!debian.policy().exists());
    }

    #[test]
    fn nothing_is_installed_where_services_cannot_be_refused() {
        let debian = FakeDebian::new("unwritable", 0);
        let unwritable = debian.0.join("no/such/directory/policy");
        assert!(!debian.install_under(&unwritable, &["sqlite3"]));
        assert!(!debian.0.join("calls").exists());
    }

    #[test]
    fn a_policy_of_the_machine_is_left_alone() {
        let debian = FakeDebian::new("kept", 0);
        fs::write(debian.policy(), "#!/bin/sh\nexit 104\n").unwrap();
        fs::set_permissions(debian.policy(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(debian.install(&["sqlite3"]));
        assert!(debian.calls().starts_with("104 update\n104 install"));
        assert_eq!(fs::read_to_string(debian.policy()).unwrap(), "#!/bin/sh\nexit 104\n");
    }
}
