//! What differs between operating systems: the same functions for each.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::containment;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub use macos::containment;
#[cfg(target_os = "macos")]
pub(crate) use macos::*;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("haft-files supports Linux and macOS");

/// Opens the directory at a relative path component by component, with no link on the way.
pub(crate) fn walk_without_links(
    dir: std::os::fd::BorrowedFd<'_>,
    path: &std::path::Path,
) -> Result<std::os::fd::OwnedFd, rustix::io::Errno> {
    let flags = DIR_HANDLE_FLAGS | rustix::fs::OFlags::NOFOLLOW;
    let mut fd = rustix::fs::openat(dir, ".", flags, rustix::fs::Mode::empty())?;
    for name in path {
        fd = rustix::fs::openat(&fd, name, flags, rustix::fs::Mode::empty())?;
    }
    Ok(fd)
}
