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
mod files;
mod hash;
mod journal;
mod process;
mod world;

pub use ambient::{read_bounded, read_named};
pub use files::{LocalFiles, Root, containment, remove_leftovers};
pub use hash::hash;
pub use journal::{Intent, Journal};
pub use process::{Environment, LocalProcesses};
pub use world::{LocalWorld, Watcher};
