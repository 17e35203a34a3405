#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! `reader` reads bash as `bash -n` does and notes each simple command; `agreement` compares with a second reader, the grammar
//! of tree-sitter. `inspect` sees through wrappers. What may be added to: the tables in `inspect/wrapper_table.rs`,
//! `inspect/tool_wrapper_table.rs`, `inspect/programs.rs`, `inspect/git.rs`, `variables.rs` and `read_only_table.rs`.
//!
//! Never here: input or output, the rules and what they decide (`haft-policy`), and recursion or loops without a bound.

mod agreement;
mod characters;
mod escapes;
mod inspect;
mod read_only;
mod read_only_arguments;
mod read_only_git;
mod read_only_table;
mod reader;
mod script;
mod variables;
mod word;

pub use read_only::is_read_only;
pub use reader::MAX_DEPTH;
pub use script::{
    Assignment, FileAccess, FileUse, Invocation, ShellScript, Unclear, UnclearReason, Wrapping,
};
pub use word::{DynamicKind, Word, WordPart};

/// Commands of a script that are listed; with more the script is unclear.
pub const MAX_COMMANDS_COUNT: usize = 1_000;
/// Longer sources are not read.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;

/// Says what a script would run and touch.
pub fn parse(source: &str) -> ShellScript {
    inspect::inspect(source)
}
