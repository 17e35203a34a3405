//! The sandbox on macOS: Seatbelt restricts a command. There is no witness; changes are found by comparing snapshots.

#[cfg(target_os = "macos")]
mod confine;
#[cfg(target_os = "macos")]
mod probe;
mod seatbelt;

#[cfg(target_os = "macos")]
pub(crate) use confine::{Confinement, SessionState, SessionView, start_child};
#[cfg(target_os = "macos")]
pub use probe::probe;

/// Whether this platform can record a command with a witness.
#[cfg(target_os = "macos")]
pub(crate) const HAS_WITNESS: bool = false;

/// When a process was started, in microseconds since 1970.
#[cfg(target_os = "macos")]
#[expect(unsafe_code, reason = "information about a process has no safe wrapper")]
pub(crate) fn process_start_time(pid: u32) -> Option<u64> {
    const MICROS_PER_SECOND: u64 = 1_000_000;
    let pid = i32::try_from(pid).ok()?;
    let size = i32::try_from(size_of::<libc::proc_bsdinfo>()).ok()?;
    // SAFETY: the structure is plain data that the kernel fills, with its size.
    let (written, info) = unsafe {
        let mut info: libc::proc_bsdinfo = std::mem::zeroed();
        let written = libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, (&raw mut info).cast(), size);
        (written, info)
    };
    (written == size).then(|| info.pbi_start_tvsec * MICROS_PER_SECOND + info.pbi_start_tvusec)
}
