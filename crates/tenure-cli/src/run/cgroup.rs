//! A control group of a program's own, where one can be made: the kernel then kills the whole tree
//! at one stroke. Without one, the walk through the tree does the same in a few steps.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Pid;
use tenure_sys::Refusal;

use super::orders::Ward;

/// A group below our own, removed when dropped.
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// `None` where version 2 is not mounted, not ours to change, or too old to kill.
    pub fn create(ward: Ward) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let below = own.lines().find_map(|line| line.strip_prefix("0::"))?;
        let parent = mount_point(&mounts)?.join(below.trim_start_matches('/'));
        let path = parent.join(format!("tenure-{}-{ward}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let group = Self { path };
        group.file("cgroup.kill").map(|_| group)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Kills everybody inside.
    pub fn kill(&self) {
        if let Some(mut file) = self.file("cgroup.kill") {
            // If this fails, the walk through the tree goes on.
            let _ = file.write_all(b"1");
        }
    }

    fn file(&self, name: &str) -> Option<File> {
        File::options().write(true).open(self.path.join(name)).ok()
    }
}

/// Starts a program as our child, inside of this group if there is one and the system does so: without one, the walk
/// through the tree finds it all the same.
pub fn spawn(command: &mut Command, group: Option<&Path>) -> io::Result<Pid> {
    if let Some(group) = group.and_then(|group| File::open(group).ok()) {
        match tenure_sys::spawn_inside(command, group) {
            Ok(child) => return Ok(child),
            Err(Refusal::Program(error)) => return Err(error),
            Err(Refusal::Group(_)) => {}
        }
    }
    let child = i32::try_from(command.spawn()?.id()).ok().and_then(Pid::from_raw);
    child.ok_or_else(|| io::Error::other("the system gave a process no number"))
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Busy as long as somebody is inside; an empty group that stays behind does no harm.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Where version 2 is mounted.
fn mount_point(mounts: &str) -> Option<&Path> {
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let is_version_2 = kind.split(' ').next() == Some("cgroup2");
        is_version_2.then(|| place.split(' ').nth(4)).flatten().map(Path::new)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_is_found_among_the_mounts() {
        let mounts = "25 30 0:23 / /sys rw - sysfs sysfs rw\n\
                      31 25 0:26 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some(Path::new("/sys/fs/cgroup/unified")));
        assert_eq!(mount_point("25 30 0:23 / /sys rw - sysfs sysfs rw"), None);
    }
}
