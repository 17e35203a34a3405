//! The `haft` program: command line, settings, the MCP service over the runtime, and management of MCP servers.
//!
//! `cli` has one file per command, `config` the settings, `claude_settings` those of Claude Code and their hooks, `service` serves Haft's tools over MCP, `servers` runs the MCP
//! servers that the user configured, `settings_edit` edits one entry of other programs' settings files, `host` answers tools' questions
//! at a terminal.
//!
//! What must never live here: a tool, a decision about a call, the MCP protocol itself (haft-mcp).

mod claude_settings;
mod cli;
mod config;
mod host;
pub mod servers;
mod service;
mod settings_edit;

pub use cli::main;
