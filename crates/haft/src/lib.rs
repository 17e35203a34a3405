//! A tool runtime for AI agents: every call is scoped, recorded and reversible.
//!
//! [`Runtime`] has the tools and makes the calls; [`Tool`] is what a tool implements.
//!
//! Features, all on by default except `testing`: `web` (HTTP for tools; brings a TLS stack), `pdf` (reading PDF files), `mcp`
//! (MCP's form of definitions and results), `sandbox` (commands, confined and recorded), `testing` (an in-memory World for tests of tools). A crate that only defines
//! tools needs none of them.
//!
//! Never here: behaviour of its own. This crate only selects and adapts what the others have.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! # let folder = tempfile::tempdir().unwrap();
//! # let home = tempfile::tempdir().unwrap();
//! # std::fs::write(folder.path().join("hello.txt"), "hello\n").unwrap();
//! use haft::{Runtime, UndoTarget, json};
//!
//! let runtime = Runtime::builder().workspace(folder.path()).home(home.path()).dialect(haft::claude()).build()?;
//! let file = runtime.workspace().join("hello.txt");
//!
//! let edit = json!({"file_path": file, "old_string": "hello", "new_string": "goodbye"});
//! let result = runtime.call("Edit", edit).await;
//! assert!(!result.output.is_error());
//! assert_eq!(result.receipt.changes.len(), 1);
//!
//! let preview = runtime.undo_preview(&UndoTarget::Call(result.receipt.id))?;
//! runtime.undo(&preview, false, Default::default()).await?;
//! # assert_eq!(std::fs::read_to_string(file).unwrap(), "hello\n");
//! runtime.shutdown().await;
//! # Ok::<(), haft::ToolError>(())
//! # }).unwrap();
//! ```

pub mod formats;
#[cfg(feature = "mcp")]
pub mod mcp_form;
pub mod selection;

// The contract: what a tool is made of.
pub use haft_tool::{
    AnyTool, Bound, Cancel, Content, Definition, Effect, EffectKind, ErrorKind, JsonSchema, Output, Perform,
    Planned, Planning, Progress, SideEffect, Text, Tool, ToolError, Value, World, json,
};
// The parts of a World.
pub use haft_tool::{
    Capture, Exit, Files, Finished, Http, HttpRequest, HttpResponse, Processes, RunRequest, TaskClass,
    TaskInfo, TaskState, Tasks,
};
// The runtime, its calls and their receipts.
pub use haft_ledger::{Ledger, ReceiptQuery};
pub use haft_runtime::{
    Asker, Builder, CallOptions, CallResult, DenyAll, PermissionAnswer, ProposedChange, Question, Registry,
    Runtime, UndoPreview, UndoTarget, Watch,
};
#[cfg(feature = "sandbox")]
pub use haft_sandbox::{CommandLimits, Environment, SandboxOptions};
pub use haft_tool::{
    Arguments, Call, Change, Decision, Execution, Node, Outcome, Receipt, ReceiptState, Reversible, Verdict,
};
// What calls may do.
pub use haft_policy::{BLOCKLIST, Behavior, Mode, Preset};
pub use haft_tool::{Dialect, Network};
pub use haft_tools::{Settings, dialects};
// What an application provides to tools.
/// What almost every tool uses, for a glob import.
pub use haft_tool::prelude;
#[cfg(feature = "testing")]
pub use haft_tool::testing;
pub use haft_tool::{
    AgentReport, AgentRequest, AnswerOption, Configuration, Host, Message, ModelRequest, ModelRole, NoHost,
    PlanReady, Resource, Setting, UserQuestion,
};

/// The `claude` dialect: the tools of Claude Code, under its names.
pub fn claude() -> Dialect {
    dialects::claude::dialect(&Settings::default())
}

/// The `loom` dialect: the tools of Loom.
pub fn loom() -> Dialect {
    dialects::loom::dialect(&Settings::default())
}

/// The `omega` dialect: the tools of Omega, their names in any case.
pub fn omega() -> Dialect {
    dialects::omega::dialect(&Settings::default())
}

/// The `clawft` dialect: the tools of clawft.
pub fn clawft() -> Dialect {
    dialects::clawft::dialect(&Settings::default())
}
