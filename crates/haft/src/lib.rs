//! Haft gives any agent safe hands: every tool call is scoped, recorded and reversible.
//!
//! The library facade: [`Runtime`] takes tools and calls, every call goes through the eight steps and gives one result.
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
pub mod mcp_form;
pub mod selection;

pub use haft_ledger::{Ledger, ReceiptQuery};
pub use haft_policy::{BLOCKLIST, Behavior, Mode, Preset};
pub use haft_runtime::{
    Answer, Asker, Builder, CallOptions, CallResult, DenyAll, Question, Registry, Runtime, UndoPreview,
    UndoTarget, Watch,
};
pub use haft_sandbox::Environment;
pub use haft_tool::*;
pub use haft_tools::{Settings, dialects};

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
