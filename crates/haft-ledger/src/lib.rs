//! The ledger: sessions, event logs and receipts, and the previous contents that undo needs.
//!
//! It is one directory: a SQLite database in WAL mode, the only store of receipts; blobs larger than a row as files named
//! by their BLAKE3 hash; and the spool of running commands. [`CallRecord`] implements the contract's `Record`. Planning
//! an undo ([`undo`]) is pure.
//!
//! What must never be here: access to workspace files, decisions, text for a screen.
#![expect(
    clippy::disallowed_methods,
    reason = "the ledger owns its database and blobs; it touches nothing else"
)]

mod blob_files;
mod blobs;
mod call_record;
mod chunks;
mod commit_spool;
mod counted_calls;
mod cumulative;
mod database;
mod dead_processes;
mod directory;
mod driver;
mod error;
mod event_search;
mod events;
mod feed;
mod file_history;
mod gc;
mod handle;
mod inbox;
mod ledger;
mod live_text;
mod object_events;
mod origin;
mod process;
mod query;
mod questions;
mod receipt_rows;
mod receipts;
mod recorded_input;
mod recover;
mod recover_changes;
mod running;
mod schema;
mod search;
mod search_cache;
mod session;
mod spool;
mod spool_reader;
mod sql;
mod stats;
pub mod undo;
mod undo_steps;
mod virtual_tree;

pub use call_record::CallRecord;
pub use counted_calls::CountedCall;
pub use cumulative::{CumulativeChange, cumulative_changes};
pub use driver::{RunDriver, RunInProgress};
pub use event_search::EventQuery;
pub use events::{EventLog, Expected, StoredEvent};
pub use feed::{FeedEntry, FeedItem};
pub use file_history::RecordedVersion;
pub use gc::{GcPolicy, GcReport};
pub use handle::{ContentReader, LedgerHandle, SessionChoice};
pub use inbox::{Inbox, InboxMessage};
pub use ledger::{Ledger, LedgerListener, LedgerWrite};
pub use live_text::{LiveSource, LiveText, LiveWriter};
pub use query::{ReceiptQuery, ReceiptSummary};
pub use questions::{QuestionId, StoredQuestion};
pub use recorded_input::recorded_input;
pub use recover_changes::WorkspaceView;
pub use running::RunningCall;
pub use search::ReceiptFilter;
pub use session::{NewSession, SessionInfo, UsedSession};
pub use stats::LedgerStats;
