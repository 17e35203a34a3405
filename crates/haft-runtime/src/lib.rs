//! The registry and the eight steps that every call walks, once, in order:
//! decode, plan, decide, ask, perform, record, bound, result.
//!
//! [`Runtime::call`] is the one way in, for every door. No step calls back up; each lives in `steps/` under its own
//! name, and `walk.rs` is the only place that puts them in a row.
//!
//! What must never live here: a tool, a dispatch on a tool's name, a second way around the steps.

mod build;
mod builder;
mod call;
mod call_state;
mod companion;
mod driver;
mod history;
mod live_output;
mod log_tool;
mod registry;
mod runtime;
mod sourced;
mod steps;
mod tasks;
mod undo;
mod undo_tools;
mod world;
mod write_order;

pub use builder::Builder;
pub use call::{CallOptions, CallResult, Watch};
pub use companion::Order;
pub use registry::{Registry, Source};
pub use runtime::{Runtime, WeakRuntime};
pub use steps::ask::{Answer, Asker, DenyAll, Question};
pub use undo::{Target, UndoPreview};
