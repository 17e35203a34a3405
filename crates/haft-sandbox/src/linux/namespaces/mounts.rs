//! Builds the file system that commands see, in a fork of Haft: no allocation, no lock, no panic, only system calls.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

use rustix::fs::{CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags};

use crate::process::last_error;

/// The kernel's limit for a name.
const MAX_NAME_BYTES: usize = 255;
/// The place of a copy that was not made yet.
const NO_COPY: RawFd = -1;

/// One step. Every path is absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MountStep {
    /// Copies the mounts at `source`, so that they can be attached when something else is mounted over `source`.
    Copy { source: CString, copy: usize, read_only: bool },
    /// Makes every mount read-only; copies stay as they are.
    ReadOnly,
    /// Mounts a new file system at a directory.
    New { kind: &'static CStr, target: CString, options: &'static CStr },
    /// Mounts an overlay at its own lower layer.
    Overlay { target: CString, options: CString },
    /// Creates a directory.
    Directory { path: CString, mode: Mode },
    /// Creates a symbolic link.
    Symlink { target: &'static CStr, path: CString },
    /// Mounts a copy at `target`. Directories that are missing on the way there are created.
    Attach { copy: usize, target: CString },
}

/// The steps, and how many copies they make.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MountPlan {
    steps: Vec<MountStep>,
    copies: usize,
}

impl MountPlan {
    /// Copies the mounts at `source`; returns the copy's number.
    pub(super) fn copy(&mut self, source: CString, read_only: bool) -> usize {
        let copy = self.copies;
        self.copies += 1;
        self.steps.push(MountStep::Copy { source, copy, read_only });
        copy
    }

    pub(super) fn add(&mut self, step: MountStep) {
        self.steps.push(step);
    }

    /// The step with this number, for messages.
    pub(super) fn step(&self, number: usize) -> Option<&MountStep> {
        self.steps.get(number)
    }

    /// Places for the copies. Must be created before the fork.
    pub(super) fn places(&self) -> Vec<RawFd> {
        vec![NO_COPY; self.copies]
    }

    /// Performs all steps. If one fails, returns its number and the reason.
    pub(super) fn perform(&self, copies: &mut [RawFd]) -> Result<(), (usize, Errno)> {
        let no_propagation = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change(c"/", no_propagation).map_err(|error| (0, error))?;
        for (number, step) in self.steps.iter().enumerate() {
            step.perform(copies).map_err(|error| (number, error))?;
        }
        Ok(())
    }
}

impl MountStep {
    fn perform(&self, copies: &mut [RawFd]) -> Result<(), Errno> {
        match self {
            Self::Copy { source, copy, read_only } => {
                let flags = OpenTreeFlags::OPEN_TREE_CLONE
                    | OpenTreeFlags::OPEN_TREE_CLOEXEC
                    | OpenTreeFlags::AT_RECURSIVE
                    | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
                let tree = rustix::mount::open_tree(CWD, source.as_c_str(), flags)?;
                if *read_only {
                    make_read_only(tree.as_raw_fd(), c"")?;
                }
                *copies.get_mut(*copy).ok_or(Errno::INVAL)? = tree.into_raw_fd();
                Ok(())
            }
            Self::ReadOnly => make_read_only(libc::AT_FDCWD, c"/"),
            Self::New { kind, target, options } => {
                rustix::mount::mount(*kind, target.as_c_str(), *kind, MountFlags::NOSUID, *options)
            }
            Self::Overlay { target, options } => {
                let kind = c"overlay";
                rustix::mount::mount(kind, target.as_c_str(), kind, MountFlags::NOSUID, options.as_c_str())
            }
            Self::Directory { path, mode } => match rustix::fs::mkdir(path.as_c_str(), *mode) {
                Err(Errno::EXIST) => Ok(()),
                result => result,
            },
            Self::Symlink { target, path } => rustix::fs::symlink(*target, path.as_c_str()),
            Self::Attach { copy, target } => attach(*copies.get(*copy).ok_or(Errno::INVAL)?, target),
        }
    }
}

/// Makes the mounts at `path` read-only, with everything below them.
#[expect(unsafe_code, reason = "mount_setattr has no safe wrapper")]
fn make_read_only(directory: RawFd, path: &CStr) -> Result<(), Errno> {
    let mut attributes =
        libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_RECURSIVE | if path.is_empty() { libc::AT_EMPTY_PATH } else { 0 };
    let size = size_of::<libc::mount_attr>();
    // SAFETY: the path ends with a NUL, and the attributes have the given size.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, directory, path.as_ptr(), flags, &raw mut attributes, size)
    };
    if result < 0 { Err(last_error()) } else { Ok(()) }
}

#[expect(unsafe_code, reason = "a copy is known by its number")]
fn attach(copy: RawFd, target: &CStr) -> Result<(), Errno> {
    if copy == NO_COPY {
        return Err(Errno::BADF);
    }
    // SAFETY: the step that made the copy keeps it open.
    let copy = unsafe { BorrowedFd::borrow_raw(copy) };
    let is_directory = FileType::from_raw_mode(rustix::fs::fstat(copy)?.st_mode) == FileType::Directory;
    let target = open_mount_point(target, is_directory)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(copy, c"", &target, c"", flags)
}

/// Opens a path component by component, creating what is missing. A link or a file that a command of the session has put
/// in the place of a directory is not followed: it gets another name.
fn open_mount_point(path: &CStr, is_directory: bool) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut open = rustix::fs::open(c"/", flags, Mode::empty())?;
    let mut rest = path.to_bytes();
    while let Some(start) = rest.iter().position(|&byte| byte != b'/') {
        rest = rest.get(start..).unwrap_or_default();
        let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
        let (name, tail) = rest.split_at(end);
        rest = tail;
        let is_last = tail.iter().all(|&byte| byte == b'/');
        let kind = if is_last && !is_directory { FileType::RegularFile } else { FileType::Directory };
        let mut buffer = [0_u8; MAX_NAME_BYTES + 1];
        buffer.get_mut(..name.len()).ok_or(Errno::NAMETOOLONG)?.copy_from_slice(name);
        let name = CStr::from_bytes_until_nul(&buffer).map_err(|_| Errno::NAMETOOLONG)?;
        open = match rustix::fs::openat(&open, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => create_mount_point(&open, name, kind)?,
            Err(error) => return Err(error),
            Ok(found) if is_usable(&found, kind)? => found,
            Ok(_) => {
                move_aside(&open, name)?;
                create_mount_point(&open, name, kind)?
            }
        };
    }
    Ok(open)
}

/// Whether something can be mounted on an existing entry: on a directory, or on anything else that is no link.
fn is_usable(found: &OwnedFd, kind: FileType) -> Result<bool, Errno> {
    let found = FileType::from_raw_mode(rustix::fs::fstat(found)?.st_mode);
    Ok(found != FileType::Symlink && (found == FileType::Directory) == (kind == FileType::Directory))
}

fn create_mount_point(directory: &OwnedFd, name: &CStr, kind: FileType) -> Result<OwnedFd, Errno> {
    if kind == FileType::Directory {
        rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o755))?;
    } else {
        rustix::fs::mknodat(directory, name, kind, Mode::from_raw_mode(0o600), 0)?;
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

/// Gives another name to what is in the way of a mount.
fn move_aside(directory: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    let mut aside = *b".moved-aside-a\0";
    for letter in b'a'..=b'z' {
        let [.., place, _] = &mut aside;
        *place = letter;
        let to = CStr::from_bytes_with_nul(&aside).map_err(|_| Errno::INVAL)?;
        match rustix::fs::renameat_with(directory, name, directory, to, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            moved => return moved,
        }
    }
    Err(Errno::EXIST)
}
