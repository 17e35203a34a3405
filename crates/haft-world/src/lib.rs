//! The World: the only door to the machine.
//!
//! Contained files, processes that end with their call, and the seam where the kernel's sandbox stands. A World is
//! built from a [`Scope`](haft_tool::Scope) for one call and holds that call to it; before it changes anything it
//! tells the [`Journal`].
//!
//! What must never live here: decisions (that is haft-policy), knowledge of a tool or a dialect, the ledger's format.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the one crate that touches files and starts processes"
)]

mod ambient;
mod companion;
mod detached;
mod enclosure;
mod files;
mod hash;
mod http;
mod journal;
mod live;
mod network;
mod process;
mod sandbox;
mod stops;
mod sweep;
mod tasks;
mod told;
mod vault;
mod witness;
mod world;

pub use ambient::{names_in, read_bounded, read_named, real_named};
pub use companion::{Companion, Life, Parting, accompany};
pub use detached::{Detached, detach};
pub use enclosure::Enclosure;
pub use files::{LocalFiles, Root, containment, remove_leftovers};
pub use hash::hash;
pub use http::Web;
pub use journal::{Before, Image, Intent, Journal};
pub use network::{Heard, Loopback};
pub use process::{Environment, LocalProcesses};
#[cfg(target_os = "linux")]
pub use sandbox::probe;
pub use sandbox::{Layer, Level, Status, profile as seatbelt_profile};
pub use stops::{Stop, attend_stops, expect_stops, hear_stops};
pub use tasks::{OnTaskEnd, TaskBook, TaskEnd, TaskPage, TaskRoom};
pub use vault::{Turn, Vault};
pub use world::{Ground, LocalWorld, Watcher};
