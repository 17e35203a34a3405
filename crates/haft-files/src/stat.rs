//! Fields of `stat` in types that are the same on every platform.
#![allow(
    clippy::allow_attributes,
    clippy::useless_conversion,
    clippy::unnecessary_fallible_conversions,
    reason = "the fields of Stat have other types on other platforms"
)]

use haft_tool::{FileId, FileTime};
use rustix::fs::{FileType, Mode, RawMode, Stat};

const PERMISSION_BITS: u32 = 0o7777;

/// Device and inode.
pub(crate) fn file_id(stat: &Stat) -> FileId {
    (u64::try_from(stat.st_dev).unwrap_or(0), stat.st_ino)
}

/// The permission bits, with setuid, setgid and sticky.
pub(crate) fn permissions(stat: &Stat) -> u32 {
    u32::from(stat.st_mode) & PERMISSION_BITS
}

/// A mode of these permission bits.
pub fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(RawMode::try_from(bits & PERMISSION_BITS).unwrap_or(0))
}

/// The bits of a mode.
pub(crate) fn mode_bits(mode: Mode) -> u32 {
    u32::from(mode.as_raw_mode())
}

/// The number of hard links.
pub(crate) fn link_count(stat: &Stat) -> u64 {
    u64::from(stat.st_nlink)
}

/// The size in bytes.
pub(crate) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// The time of the last modification in nanoseconds since 1970.
pub(crate) fn modified_ns(stat: &Stat) -> i64 {
    let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
    stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// The time of the last modification.
pub(crate) fn modified(stat: &Stat) -> FileTime {
    (stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or(0))
}

pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(crate) fn is_file(stat: &Stat) -> bool {
    file_type(stat) == FileType::RegularFile
}

pub(crate) fn is_directory(stat: &Stat) -> bool {
    file_type(stat) == FileType::Directory
}

/// Whether both describe the same file with the same content. Entries of a directory do not matter.
pub(crate) fn same_version(a: &Stat, b: &Stat) -> bool {
    let same_content = size(a) == size(b) && modified_ns(a) == modified_ns(b);
    // The types of both are checked, because a file of another type can reuse an inode number.
    file_id(a) == file_id(b) && (same_content || is_directory(a) && is_directory(b))
}
