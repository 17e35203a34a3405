//! The registry and the pipeline of a call: decode, plan, decide, ask, perform, record, bound, result.
//!
//! Every entry point calls [`Runtime::call`] or [`Runtime::run`]. `driver.rs` runs the steps once, in order; no step calls an
//! earlier one.
//!
//! Never here: a tool's implementation, a dispatch on a tool's name, a way to perform a call without all steps.

mod agent_runtime;
mod build;
mod builder;
mod call;
mod call_state;
#[cfg_attr(not(feature = "sandbox"), path = "no_commands.rs")]
mod commands;
mod describe;
mod driver;
mod effects;
mod explain;
mod grants;
mod history;
mod hook_command;
mod hooks;
#[cfg(feature = "sandbox")]
mod host_questions;
mod host_with_resources;
#[cfg(feature = "sandbox")]
mod live_output;
mod log_tool;
mod recorded_content;
mod registry;
mod runtime;
#[cfg(feature = "sandbox")]
mod server_process;
mod shared_questions;
mod steps;
#[cfg(feature = "sandbox")]
mod tasks;
mod text_diff;
mod undo;
mod undo_calls;
mod undo_guard;
mod undo_merge;
mod undo_paths;
mod undo_tools;
mod workspace_view;
mod world;
mod write_order;

pub use agent_runtime::AgentSession;
pub use builder::Builder;
pub use call::{CallOptions, CallResult, Watch};
#[cfg(feature = "sandbox")]
pub use commands::cache_from_env;
pub use describe::{about, effect_line};
pub use explain::CallExplanation;
pub use hook_command::{HookCommand, HookCommandEnd};
pub use hooks::Hooks;
pub use recorded_content::{MAX_DIFF_FILE_BYTES, recorded_content};
pub use registry::{Registry, ToolSource};
pub use runtime::{Runtime, WeakRuntime};
#[cfg(feature = "sandbox")]
pub use server_process::ServerLaunch;
pub use shared_questions::{AnswerContent, PermissionQuestion, SharedAnswer, SharedChange, SharedQuestion};
pub use steps::ask::{Asker, DenyAll, NeverAsk, PermissionAnswer, Question, how_to_allow};
pub use steps::preview::ProposedChange;
pub use text_diff::{DiffHunk, DiffLine, LineTag, TextChanges, text_changes};
pub use undo::{UndoPreview, UndoTarget};
pub use undo_paths::UndoPaths;
