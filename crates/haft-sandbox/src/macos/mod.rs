//! The sandbox on macOS: Seatbelt restricts a command. There is no witness; changes are found by comparing snapshots.

#[cfg(target_os = "macos")]
mod confine;
#[cfg(target_os = "macos")]
mod probe;
mod seatbelt;

#[cfg(target_os = "macos")]
pub(crate) use confine::{Confinement, PreparedSandbox, SessionState, SessionView, start_child};
#[cfg(target_os = "macos")]
pub use probe::probe;

/// Whether this platform can record a command with a witness.
#[cfg(target_os = "macos")]
pub(crate) const HAS_WITNESS: bool = false;
