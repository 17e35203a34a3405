//! Transcripts of other agents, read into one neutral type, and written in Claude Code's form.
//!
//! A transcript is a file of JSON lines. Lines of a kind that is not known are skipped and counted, as are lines that cannot be read; the
//! length of a line and the number of entries are bounded.

mod claude;
mod claude_line;
mod claude_writer;
mod codex;
mod json_lines;
mod messages;
mod timestamp;
mod transcript;

pub use claude::read_claude_transcript;
pub use claude_writer::{ClaudeTranscriptHead, claude_project_name, write_claude_transcript};
pub use codex::read_codex_transcript;
pub use messages::{MessageRole, TranscriptMessage};
pub use transcript::{EntryBody, Transcript, TranscriptEntry, TranscriptImage, TranscriptSource};

/// The longest line that is read; images are part of a line.
pub const MAX_LINE_BYTES: usize = 32 << 20;
/// Entries of one transcript; what follows is counted as skipped.
pub const MAX_ENTRIES: usize = 200_000;
/// How deep the arguments of a call may be nested; deeper ones are kept as text.
pub const MAX_ARGUMENT_DEPTH: usize = 32;
