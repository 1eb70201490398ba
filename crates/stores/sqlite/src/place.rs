//! Where the file lies: whether SQLite's locks hold there, and which file it is.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tenure_store::StoreError;

/// File systems whose locks do not bind all who see the file, by the number that `statfs` tells.
/// From `linux/magic.h`, and for those outside the kernel's tree from their own headers.
const NETWORK_FILE_SYSTEMS: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x00C3_6400, "Ceph"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0BD0_0BD0, "Lustre"),
    (0x7461_636F, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x6573_5546, "FUSE"),
    (0x564C, "NCP"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x2003_0528, "OrangeFS"),
    (0x786F_4256, "VirtualBox shared folders"),
];

/// The name of a file system that other machines may share, if it is one.
pub(crate) fn shared_file_system(magic: u32) -> Option<&'static str> {
    NETWORK_FILE_SYSTEMS.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

/// Which file it is, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    pub device: u64,
    pub inode: u64,
}

/// Which file the path names now. It is never opened for this: closing any descriptor of a
/// database drops every POSIX lock that this process holds on it.
pub(crate) fn file_id(path: &Path) -> io::Result<FileId> {
    let found = std::fs::metadata(path)?;
    Ok(FileId { device: found.dev(), inode: found.ino() })
}

/// The one name under which all processes know the file, after everything that can be wrong
/// with its place was looked at. Nothing is created.
pub(crate) fn settle(path: &Path) -> Result<PathBuf, StoreError> {
    let wrong = |problem: String| StoreError::misconfigured(problem);
    let absolute = std::path::absolute(path)
        .map_err(|error| wrong(format!("`{}` is no path for a database: {error}", path.display())))?;
    let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(wrong(format!("`{}` is a directory; name a file in it", absolute.display())));
    };
    let parent = parent.canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => wrong(format!(
            "the directory `{0}` does not exist; create it (`mkdir -p {0}`), or name another file",
            parent.display()
        )),
        _ => wrong(format!("the directory `{}` cannot be used: {error}", parent.display())),
    })?;
    let mut settled = parent.join(name);
    // A symbolic link: SQLite keeps its log beside the target, and so do we with our signal.
    if settled.is_symlink() {
        settled = settled.canonicalize().map_err(|error| {
            wrong(format!("the symbolic link `{}` leads nowhere: {error}", settled.display()))
        })?;
    }
    if settled.is_dir() {
        return Err(wrong(format!("`{}` is a directory; name a file in it", settled.display())));
    }
    if settled.exists() && !settled.is_file() {
        return Err(wrong(format!("`{}` is a device or a socket; name a file", settled.display())));
    }
    refuse_network(&settled, &parent)?;
    Ok(settled)
}

/// The number of the file system that a path lies on.
pub(crate) fn file_system(path: &Path) -> Option<u32> {
    let found = rustix::fs::statfs(path).ok()?;
    // The number has 32 bits; the field is wider, and on some machines sign-extended.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    let magic = found.f_type as u32;
    Some(magic)
}

fn refuse_network(path: &Path, parent: &Path) -> Result<(), StoreError> {
    let place = if path.exists() { path } else { parent };
    file_system(place).and_then(shared_file_system).map_or(Ok(()), |name| {
        Err(StoreError::misconfigured(format!(
            "`{}` is on a {name} file system, where locks do not hold between machines, so two leaders could \
             be elected; use a local disk, or another store",
            path.display()
        )))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_other_machines_are_known_by_number() {
        assert_eq!(shared_file_system(0x6969), Some("NFS"));
        assert_eq!(shared_file_system(0xFF53_4D42), Some("CIFS"));
        assert_eq!(shared_file_system(0x6573_5546), Some("FUSE"));
        assert_eq!(shared_file_system(0x0102_1997), Some("9P"));
    }

    #[test]
    fn local_file_systems_are_not_refused() {
        for (magic, name) in [
            (0xEF53, "ext4"),
            (0x5846_5342, "xfs"),
            (0x9123_683E, "btrfs"),
            (0x0102_1994, "tmpfs"),
            (0x794C_7630, "overlayfs"),
            (0x2FC1_2FC1, "zfs"),
            (0xF2F5_2010, "f2fs"),
        ] {
            assert_eq!(shared_file_system(magic), None, "{name}");
        }
    }

    #[test]
    fn a_missing_directory_is_named_with_what_to_do() {
        let error = settle(Path::new("/no/such/place/x.db")).unwrap_err();
        assert!(matches!(error, StoreError::Misconfigured(_)));
        assert!(error.to_string().contains("mkdir -p /no/such/place"), "{error}");
    }

    #[test]
    fn a_device_is_no_place_for_a_database() {
        assert!(settle(Path::new("/dev/null")).unwrap_err().to_string().contains("name a file"));
    }

    #[test]
    fn a_link_and_its_target_are_one_place() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("real.db"), "").unwrap();
        std::os::unix::fs::symlink(dir.path().join("real.db"), dir.path().join("link.db")).unwrap();
        assert_eq!(
            settle(&dir.path().join("link.db")).unwrap(),
            settle(&dir.path().join("real.db")).unwrap()
        );
    }
}
