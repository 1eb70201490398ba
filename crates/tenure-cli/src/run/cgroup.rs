//! A control group of a program's own, where one can be made: the kernel then kills the whole tree
//! at one stroke. Without one, the walk through the tree does the same in a few steps.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

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

    /// Where a process writes `0` to enter.
    pub fn door(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// Kills everybody inside.
    pub fn kill(&self) {
        if let Some(mut file) = self.file("cgroup.kill") {
            // If this fails, the walk through the tree goes on.
            let _ = file.write_all(b"1");
        }
    }

    fn file(&self, name: &str) -> Option<File> {
        open(&self.path.join(name))
    }
}

/// A file of a group, to be written to.
pub fn open(path: &Path) -> Option<File> {
    File::options().write(true).open(path).ok()
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
