//! Sandboxed processes: the `Processes` and `Tasks` parts of the World on this machine.
//!
//! `process` starts process trees and ends them, `session` prepares the sandbox of a session's commands, `linux` and
//! `macos` confine them, `linux::witness` and `snapshot` record what they change, `tasks` keeps background commands.
//!
//! What must never be here: decisions (haft-policy), knowledge of a tool or a dialect, the ledger's format.
#![expect(
    clippy::disallowed_methods,
    reason = "this crate starts processes and acts on files on their behalf"
)]

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("Haft runs on Linux and macOS; on Windows use it in WSL");

mod denials;
mod detached;
mod environment;
mod git_config;
mod guards;
mod limits;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(target_os = "macos", test))]
mod macos;
mod opener;
mod options;
mod pager;
mod process;
mod quiet_terminal;
mod secrets;
mod server_process;
mod session;
mod signals;
mod snapshot;
mod status;
mod tasks;
mod terminal;

#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(target_os = "macos")]
use macos as platform;

pub use haft_net::proxy::{HostAsker, UnlistedHost};

pub use denials::RefusalSink;
pub use detached::{
    DetachedOutput, DetachedProcess, detached_outputs, remove_detached_output, spawn_detached,
};
pub use environment::{Environment, secret_values};
pub use guards::{FilesInEffect, leading_to, restore_guarded_changes};
pub use limits::CommandLimits;
pub use opener::open_for_user;
pub use options::SandboxOptions;
pub use pager::show_in_pager;
pub use platform::probe;
pub use process::LocalProcesses;
pub use quiet_terminal::{QuietTerminal, note_terminal_modes, restore_terminal, terminal_is_quiet};
pub use server_process::{ServerControl, ServerExit, ServerProcess, start_server_process};
pub use session::{
    CachePolicy, CacheReport, CommandHooks, SessionSandbox, private_temp_directory, registry_hosts,
    remove_old_caches,
};
pub use signals::{TerminationSignal, on_continue, on_termination_signal};
pub use status::{Layer, LayerLevel, SandboxStatus};
pub use tasks::{CallTasks, OnTaskEnd, TaskTable};
pub use terminal::{AnswerForm, ask_at_terminal, terminal_is_raw};
