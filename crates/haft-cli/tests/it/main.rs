//! The `haft` program and the library, tested through their public interfaces. One module per topic; what they share is in
//! `fixture`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and looks at the machine itself"
)]

mod agent;
mod agent_sdk;
mod at_the_terminal;
mod byte_fidelity;
mod claude_settings;
mod clawft;
mod cli;
mod cli_history;
mod cli_ledger;
#[cfg(target_os = "linux")]
mod cli_undo;
mod config;
mod crash_recovery;
mod dialect_choice;
mod documents;
#[cfg(target_os = "linux")]
mod escapes;
mod examples;
mod exec;
mod fixture;
mod gateway;
mod guard_table;
mod host;
mod large_directory;
mod library;
mod library_undo;
mod loom;
mod loom_proxies;
mod mcp_clients;
mod mcp_manage;
mod mcp_results;
mod mcp_server;
mod mcp_servers;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod no_witness;
mod omega;
mod path_rules;
mod pdf_notebook;
mod project_root;
mod redteam;
mod ripgrep_agreement;
#[cfg(target_os = "linux")]
mod sandbox_options;
mod schemas;
mod seed_003;
mod serve;
mod sessions;
mod statements;
#[cfg(target_os = "linux")]
mod tasks;
mod telemetry;
mod typed_arguments;
#[cfg(target_os = "linux")]
mod undo_commands;
mod undo_tool;
mod web;
mod web_search;
#[cfg(target_os = "linux")]
mod workloads;
