//! Finds out what the checks need, installs what is missing, and says so.
//!
//! A newcomer's first command is `cargo xtask test`; it has to work on a bare machine, and must
//! leave nothing running there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use crate::cargo::Cargo;

/// A program that comes from Debian packages.
struct Need {
    program: &'static str,
    packages: &'static [&'static str],
    why: &'static str,
}

const NEEDS: &[Need] = &[
    // Without libc6-dev, gcc compiles but cannot link; apt only recommends it.
    Need { program: "cc", packages: &["gcc", "libc6-dev"], why: "compiles the bundled SQLite" },
    Need { program: "sqlite3", packages: &["sqlite3"], why: "reads the store's file from outside, in tests" },
    Need { program: "initdb", packages: &["postgresql-15"], why: "a server of our own, in tests" },
    Need { program: "mariadbd", packages: &["mariadb-server"], why: "a server of our own, in tests" },
    // These are found nowhere on PATH, so the packages decide.
    Need {
        program: "zookeeper.jar",
        packages: &["zookeeper", "default-jdk-headless"],
        why: "servers of our own, in tests",
    },
    Need {
        program: "curator-recipes.jar",
        packages: &["libcurator-recipes-java", "libguava-java", "libslf4j-java", "python3-kazoo"],
        why: "candidates of other libraries, in tests",
    },
    Need { program: "pgbouncer", packages: &["pgbouncer"], why: "a pool before that server, in tests" },
    Need { program: "ip", packages: &["iproute2"], why: "networks of our own that fail as told, in tests" },
    Need {
        program: "iptables",
        packages: &["iptables"],
        why: "cuts such a network in one direction, in tests",
    },
    Need {
        program: "faketime",
        packages: &["faketime"],
        why: "steps the wall clock of single processes, in tests",
    },
    Need { program: "promtool", packages: &["prometheus"], why: "reads metrics and alert rules, in tests" },
    Need { program: "nginx", packages: &["nginx-light"], why: "a load balancer before our nodes, in tests" },
    Need { program: "haproxy", packages: &["haproxy"], why: "another one, in tests" },
    // `systemctl` alone may be somebody else's.
    Need { program: "systemd-analyze", packages: &["systemd"], why: "starts our units, in tests" },
    Need { program: "python3", packages: &["python3"], why: "an example in Python, in tests" },
    Need { program: "node", packages: &["nodejs"], why: "an example in Node.js, in tests" },
    Need {
        program: "chromium",
        packages: &["chromium"],
        why: "a browser that reads a node's page, in tests",
    },
];

/// What is measured beside Tenure, and needed for nothing else.
const RIVALS: &[Need] = &[
    Need {
        program: "etcd",
        packages: &["etcd-server"],
        why: "a server with an election of its own, in benches",
    },
    Need { program: "etcdctl", packages: &["etcd-client"], why: "asks that server how it is, in benches" },
    // Sources, and a module of Python: the packages decide.
    Need {
        program: "election.go",
        packages: &["golang-go", "golang-etcd-server-dev"],
        why: "takes part in that election, in benches",
    },
    Need {
        program: "erl",
        packages: &["erlang-base"],
        why: "nodes that elect by a registered name, in benches",
    },
    Need {
        program: "ensurepip",
        packages: &["python3-venv"],
        why: "an environment for libraries that Debian does not have, in benches",
    },
];

/// Libraries of Python that are measured beside Tenure, for an environment of their own.
const PYTHON: [&str; 1] = ["tooz[zookeeper]"];

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
    // Packages come from the network and the disk, tools from the compiler: side by side, unless there is nothing yet
    // that links them.
    let (packages, tools) = if on_path("cc") {
        thread::scope(|scope| {
            let tools = scope.spawn(install_tools);
            (install_packages(NEEDS.iter()), tools.join().expect("it does not panic"))
        })
    } else {
        (install_packages(NEEDS.iter()), install_tools())
    };
    if !(packages? | install_components()? | tools?) {
        println!("everything needed is installed");
    }
    Ok(())
}

/// Installs what benches need and miss: the servers that tests need too, and rivals.
pub fn install_for_benches(benches: &[String]) -> Result<(), String> {
    install_packages(NEEDS.iter().chain(RIVALS))?;
    if benches.iter().any(|bench| bench == "compare") { install_python() } else { Ok(()) }
}

/// Into the target directory, where the test kit's `others` looks for it.
fn install_python() -> Result<(), String> {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let place = target.unwrap_or_else(|| crate::repository().join("target")).join("others/python");
    // What is there last, once all is there.
    if place.join("ready").exists() {
        return Ok(());
    }
    let directory = place.to_string_lossy();
    println!("installing {} for Python, in {directory}: measured beside Tenure", PYTHON.join(" and "));
    // Debian's own, whatever else is on the path.
    let make = ["/usr/bin/python3", "-m", "venv", &directory];
    succeed(Command::new(make[0]).args(&make[1..]), &make.join(" "))?;
    let pip = place.join("bin/pip");
    let by_hand = format!("{} install {}", pip.display(), PYTHON.join(" "));
    succeed(Command::new(&pip).args(["install", "--quiet"]).args(PYTHON), &by_hand)?;
    fs::write(place.join("ready"), "").map_err(|error| format!("{}: {error}", place.display()))
}

fn install_packages(needs: impl Iterator<Item = &'static Need>) -> Result<bool, String> {
    let missing: Vec<&Need> = needs.filter(|need| !need.is_met()).collect();
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

/// Cargo's own tools that checks need, each with what it is for.
const TOOLS: [(&str, &str); 2] =
    [("nextest", "it runs the tests"), ("deny", "it checks licences, bans and sources of what we depend on")];

fn install_tools() -> Result<bool, String> {
    let mut installed = false;
    for (tool, why) in TOOLS {
        if Cargo::new(&format!("{tool} --version")).succeeds() {
            continue;
        }
        println!("installing cargo tool cargo-{tool}: {why} (once; takes some minutes)");
        // Built as they are released, with link-time optimisation, they take several times as long to build, and they
        // run for seconds.
        let install = Cargo::new(&format!("install --locked cargo-{tool}"))
            .environment("CARGO_PROFILE_RELEASE_LTO", "off")
            .environment("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .environment("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
        match install.run() {
            Ok(status) if status.success() => installed = true,
            Ok(status) => return Err(format!("`{install}` failed ({status}); run it yourself to see why")),
            Err(error) => return Err(format!("cannot run `{install}`: {error}")),
        }
    }
    Ok(installed)
}

fn succeed(command: &mut Command, by_hand: &str) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!(
            "the installation failed ({status}), and its output above says why; repair that, then run by hand: {by_hand}"
        )),
        Err(error) => Err(format!("cannot start the installation: {error}; by hand: {by_hand}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A directory with an `apt-get` of its own, which notes each call and asks the policy.
    struct FakeDebian(PathBuf);

    impl FakeDebian {
        fn new(name: &str, exit: u8) -> Self {
            let directory = env::temp_dir().join(format!("tenure-xtask-{}-{name}", std::process::id()));
            fs::create_dir_all(&directory).unwrap();
            let debian = Self(directory);
            debian.program(
                "apt-get",
                &format!(
                    "{0}/policy; echo \"$? $*\" >>{0}/calls\n[ $1 != install ] || [ -e {0}/repaired ] || exit {exit}",
                    debian.0.display()
                ),
            );
            debian.program("dpkg", &format!("echo \"dpkg $*\" >>{}/calls", debian.0.display()));
            debian
        }

        fn program(&self, name: &str, script: &str) {
            let path = self.0.join(name);
            fs::write(&path, format!("#!/bin/sh\nset +e\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
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

    /// By what the test kit says is missing where a program is not found.
    #[test]
    fn every_server_that_the_test_kit_starts_is_installed() {
        let known: Vec<_> = NEEDS.iter().chain(RIVALS).flat_map(|need| need.packages).copied().collect();
        let mut named = 0;
        for file in fs::read_dir(crate::repository().join("crates/tenure-testkit/src/server")).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            for package in text.split("installed(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(known.contains(&package), "{package} is on no list of what is installed");
                named += 1;
            }
        }
        assert!(named >= 4, "only {named} were found");
    }

    #[test]
    fn services_are_refused_while_packages_are_installed_and_allowed_again_after() {
        let debian = FakeDebian::new("refused", 0);
        assert!(debian.install(&["gcc", "sqlite3"]));
        assert_eq!(debian.calls(), "101 update\n101 install -y --no-install-recommends gcc sqlite3\n");
        assert!(!debian.policy().exists());
    }

    #[test]
    fn an_installation_that_fails_once_is_repaired_and_tried_again() {
        let debian = FakeDebian::new("repaired", 100);
        let repair = format!("echo \"dpkg $*\" >>{0}/calls; touch {0}/repaired", debian.0.display());
        debian.program("dpkg", &repair);
        assert!(debian.install(&["sqlite3"]));
        let install = "101 update\n101 install -y --no-install-recommends sqlite3\n";
        assert_eq!(debian.calls(), format!("{install}dpkg --configure -a\n101 -f install -y\n{install}"));
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
