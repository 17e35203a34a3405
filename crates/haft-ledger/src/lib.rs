//! The append-only record of calls: sessions, events, receipts, and the before-images that undo needs.
//!
//! All of it lies in one home directory: a SQLite database in WAL mode, and beside it the larger before-images as
//! files named by their BLAKE3 hash; the spool holds what commands that run may need. The event log says what happened; the table of receipts is only its index,
//! written in the same transaction. [`undo`] is pure: it turns receipts into the steps that take them back.
//!
//! What must never live here: the workspace's files (only haft-world touches those), decisions, text for a screen.
#![expect(
    clippy::disallowed_methods,
    reason = "the ledger owns its own database and blobs; it touches nothing else"
)]

mod aftermath;
mod blobs;
mod call_record;
mod codec;
mod db;
mod event;
mod fault;
mod gc;
mod handle;
mod harvest;
mod health;
mod home;
mod ledger;
mod owner;
mod packs;
mod past;
mod query;
mod receipts;
mod record;
mod recover;
mod schema;
mod session;
mod spool;
mod sql;
pub mod undo;

pub use aftermath::Look;
pub use call_record::CallRecord;
pub use event::{Event, EventLog, Expected, Stored};
pub use gc::{GcPolicy, GcReport};
pub use handle::LedgerHandle;
pub use health::Stats;
pub use ledger::Ledger;
pub use query::{Entry, Query};
pub use session::{NewSession, Session};
pub use spool::Spool;
