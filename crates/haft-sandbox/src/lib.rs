//! Sandboxed processes: the `Processes` and `Tasks` parts of the World on this machine.
//!
//! `process` starts and ends process trees, `sandbox` confines them, `witness` records and performs their mutating system
//! calls, `enclosure` holds what the commands of a session share, `tasks` keeps background commands.
//!
//! What must never live here: decisions (haft-policy), knowledge of a tool or a dialect, the ledger's format.
#![expect(
    clippy::disallowed_methods,
    reason = "this crate starts processes and acts on files on their behalf"
)]

mod companion;
mod detached;
mod enclosure;
mod process;
mod sandbox;
mod signals;
mod sweep;
mod tasks;
mod witness;

pub use companion::{Companion, Life, Parting, accompany};
pub use detached::{Detached, detach};
pub use enclosure::Enclosure;
pub use process::{Environment, LocalProcesses};
#[cfg(target_os = "linux")]
pub use sandbox::probe;
pub use sandbox::{Layer, Level, Status, profile as seatbelt_profile};
pub use signals::{TerminationSignal, on_termination_signal};
pub use tasks::{Desk, OnTaskEnd, TaskRoom};
