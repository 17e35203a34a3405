//! `haft exec`: Codex's non-interactive form.

mod command_line;
mod sdk;
