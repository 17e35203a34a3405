//! Other paths of a directory, through mounts that show the same part of a file system.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use crate::hard_links::id_of;

/// A larger table is not read to its end.
const MAX_TABLE_BYTES: u64 = 4 << 20;

/// The other paths of the directory at `path`, which contains no links: through bind mounts, or file systems that are mounted
/// twice.
pub fn mounted_elsewhere(path: &Path) -> Vec<PathBuf> {
    // Other systems have no such table.
    let table = std::fs::File::open("/proc/self/mountinfo")
        .and_then(|file| crate::read_bounded(file, MAX_TABLE_BYTES))
        .ok()
        .flatten()
        .unwrap_or_default();
    let mut others = other_paths(&table, path);
    // Another mount may cover it.
    let own = id_of(path);
    others.retain(|other| id_of(other) == own);
    others
}

/// A line of the table: the file system, which of its directories is mounted, and where.
struct MountLine {
    device: Vec<u8>,
    root: PathBuf,
    target: PathBuf,
}

impl MountLine {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        let (device, root, target) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Self { device: device.to_vec(), root: unescaped(root), target: unescaped(target) })
    }
}

fn other_paths(table: &[u8], path: &Path) -> Vec<PathBuf> {
    let mounts: Vec<_> = table.split(|byte| *byte == b'\n').filter_map(MountLine::parse).collect();
    // Of several mounts at one path, the last one is on top.
    let own = mounts.iter().rev().filter(|mount| path.starts_with(&mount.target));
    let Some(own) = own.max_by_key(|mount| mount.target.as_os_str().len()) else { return Vec::new() };
    let Ok(below) = path.strip_prefix(&own.target) else { return Vec::new() };
    let inside = own.root.join(below);
    let same = mounts.iter().filter(|mount| mount.device == own.device);
    let found = same.filter_map(|mount| Some(mount.target.join(inside.strip_prefix(&mount.root).ok()?)));
    let mut others: Vec<PathBuf> = found.filter(|other| other != path).collect();
    others.sort();
    others.dedup();
    others
}

/// Decodes a path from the table, in which spaces and the like are octal numbers.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let octal = match rest {
            [b'\\', digits @ ..] => digits.get(..3).and_then(|digits| std::str::from_utf8(digits).ok()),
            _ => None,
        };
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => (bytes.push(byte), rest = &tail[3..]).1,
            None => (bytes.push(*first), rest = tail).1,
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        30 22 0:40 /@home /home rw shared:1 - btrfs /dev/sdb rw\n\
        31 22 0:40 / /mnt/whole\\040disk rw - btrfs /dev/sdb rw\n\
        32 22 8:1 /srv/data /export rw - ext4 /dev/sda1 rw\n\
        33 22 0:41 / /home/u/proj rw - tmpfs none rw\n";

    #[test]
    fn directories_have_the_paths_of_all_mounts_that_show_them() {
        let others = |path: &str| -> Vec<String> {
            let found = other_paths(TABLE, Path::new(path));
            found.iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(others("/home/u"), ["/mnt/whole disk/@home/u"]);
        assert_eq!(others("/export/u"), ["/srv/data/u"]);
        assert_eq!(others("/srv/data/u"), ["/export/u"]);
        assert_eq!(others("/root"), [""; 0]);
        assert_eq!(others("/home/u/proj"), [""; 0]);
    }
}
