//! Claude Code's contract with hooks: which run ([`HookMatcher`]), what they are told ([`HookInput`]), what their exit code
//! and output mean ([`HookOutcome`]), and what several of them mean together ([`HookOutcome::merge`]).
//!
//! A hook is a program that reads one JSON object on stdin. Exit code 0 means that its stdout holds: JSON in Claude Code's
//! form, or text. Exit code 2 blocks, with stderr as the reason. All else is a failure.
//!
//! Differences from Claude Code:
//!
//! - A failure of a `PreToolUse` hook blocks the call, unless the settings say `"onFailure": "continue"`. A guard that
//!   crashes, hangs or is missing must not be the same as one that agrees. Claude Code goes on unless they say `block`.
//! - A matcher that is no regular expression, or one that needs look-around or back-references, matches everything and is
//!   reported. In Claude Code its hooks never run.
//! - Texts that are handed on are clipped to the limits in this module.

mod event;
mod input;
mod matcher;
mod merge;
mod outcome;
mod output_json;
mod permission_update;

pub use event::HookEvent;
pub use input::{BatchCall, HookContext, HookInput};
pub use matcher::HookMatcher;
pub use outcome::{
    HookBehavior, HookDecision, HookEnd, HookExit, HookOutcome, HookPermissionAnswer, HookStop,
    MAX_HOOK_OUTPUT_BYTES, MAX_HOOK_TEXT_CHARS, OnFailure,
};
pub use permission_update::{
    PermissionUpdate, PermissionUpdateBehavior, PermissionUpdateDestination, PermissionUpdateRule,
};
