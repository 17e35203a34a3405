//! The contract between Haft and a tool.
//!
//! For tool authors: [`Tool`], the [`Effect`]s it declares, the [`World`] it uses, its [`Output`] and [`ToolError`]. The types
//! that the other crates exchange ([`Call`], [`Scope`], [`Receipt`], [`Change`]) are defined here too, once.
//!
//! Never here: I/O, and knowledge of a particular tool, dialect or provider.

mod bound;
mod call;
mod cancel;
mod change;
mod change_kind;
mod close;
mod command_changes;
mod configuration;
mod dialect;
mod directory_tracker;
mod effect;
mod error;
mod error_form;
mod execution;
mod files;
mod git_object;
mod glob_limits;
mod host;
mod http;
mod http_stream;
mod lines;
mod lock;
pub mod net;
mod output;
mod path_text;
pub mod prelude;
mod receipt;
mod record;
mod retry;
mod schema;
mod scope;
mod secret;
pub mod sse;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
mod tool;
mod trace;
mod validation_cost;
mod world;

pub use bound::{Bound, Cut, JsonBound, Keep, clip_chars, cut_list, cut_string};
pub use call::{Arguments, Call};
pub use cancel::{Cancel, CancelGuard};
pub use change::{Change, DirNode, FileId, FileNode, FileTime, Hash, Node, Reversible};
pub use change_kind::ChangeKind;
pub use close::close_names;
pub use command_changes::{CommandChanges, CommandView, DirectoryEvent, PathState};
pub use configuration::{Configuration, Setting};
pub use dialect::Dialect;
pub use directory_tracker::DirectoryTracker;
pub use effect::{Effect, EffectKind, SideEffect};
pub use error::{ErrorKind, ToolError};
pub use error_form::ErrorForm;
pub use execution::{Execution, Outcome, Progress, now_ms};
pub use files::{
    DirEntry, EditFn, FileKind, FileVisitor, Files, OpenContent, OpenFile, RestorePlan, RestoreStep,
    StagedStep, WalkRequest, WalkedFile, Written,
};
pub use git_object::{
    GitBlob, GitObjectEvent, GitObjectEventKind, GitObjectFile, GitObjectId, git_objects_directory,
    is_git_index,
};
pub use glob_limits::check_glob;
pub use host::{
    AgentReport, AgentRequest, AgentTask, AnswerOption, Audience, Host, HostAnswer, HostRequest, Message,
    ModelRequest, ModelRole, NoHost, PlanReady, Resource, UserQuestion,
};
pub use http::{Http, HttpRequest, HttpResponse, NoHttp, Redirects};
pub use http_stream::{HttpBody, HttpStream, HttpStreams, StreamRequest};
pub use lines::{InputLine, LineSplitter};
pub use lock::lock;
pub use output::{Content, Output, Text};
pub use path_text::{path_from_text, path_to_text};
pub use receipt::{Decision, Receipt, ReceiptState, Verdict};
pub use record::{CallEnd, FileContent, Intent, LiveOutput, ReadOnlyRecord, Record, WORKING_DIRECTORY_NOTE};
pub use retry::{AttemptVerdict, Pause, RETRY_STATUSES, RetryPolicy, retry_after, retry_after_of, seconds};
pub use schema::{formats_of, result_schema_of, schema_of};
pub use scope::{Network, Reach, Reads, Sandbox, Scope, lies_in};
pub use secret::Secret;
pub use task::{TaskClass, TaskInfo, TaskRead, TaskState, Tasks};
pub use tool::{AnyTool, Definition, Perform, Planned, Tool, ToolNeed};
pub use trace::{CallTrace, SpanId, TraceContext, TraceId, hex};
pub use validation_cost::is_checked_within;
pub use world::{
    Capture, Denial, Exit, Finished, Planning, PreviewedChange, Processes, RunRequest, World,
    runs_on_build_line,
};

/// What the types of inputs and results derive.
pub use schemars::JsonSchema;
/// JSON values and the macro that writes them.
pub use serde_json::{Value, json};
