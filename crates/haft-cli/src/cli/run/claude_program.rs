//! The `claude` program as a provider: with Haft's MCP server in place of its own tools.
//!
//! It needs the network and its login, and its MCP server needs the ledger, so it runs outside the sandbox. It has no tools of its
//! own there and reads no settings of the project, which could start programs; what Haft's tools do is scoped as always.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Args as _, CommandFactory as _};
use haft_files::read_bounded;
use haft_model::{ClaudeCliModel, ClaudeCliSettings, ClaudeProgram, ModelSet};
use haft_policy::AGENTS;
use haft_runtime::{Runtime, ServerLaunch};
use haft_tool::{Cancel, ErrorKind, ToolError, Value, clip_chars, json};

use super::super::args::Haft;
use super::super::mcp::ServeArgs;
use super::super::with_run;

/// The provider's name.
pub(super) const CLAUDE_CLI: &str = "claude-cli";
/// The program, and the name of its profile in haft-policy.
const PROGRAM: &str = "claude";
/// Longest output.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;
/// How much of its error output is kept.
const MAX_ERROR_BYTES: u64 = 64 << 10;
/// Characters of its error output in a message.
const MAX_ERROR_CHARS: usize = 1_000;
/// How long to wait for its exit after its output has ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Variables that say where Haft's own files are.
const HAFT_VARIABLES: [&str; 4] = ["HAFT_HOME", "HAFT_CONFIG", "HAFT_CACHE", "XDG_STATE_HOME"];

/// The models of the program: fast and complex. `model` answers.
pub(super) fn models(runtime: &Runtime, model: &str, max_turns: Option<u32>) -> Result<ModelSet, ToolError> {
    let settings = ClaudeCliSettings {
        model: Some(model.to_owned()),
        max_turns,
        mcp_config: Some(json!({"mcpServers": {"haft": own_server(runtime)?}})),
        own_tools: false,
    };
    let process = ClaudeProcess { program: find_program()?, runtime: runtime.clone() };
    Ok(ModelSet::claude_cli(Arc::new(ClaudeCliModel::new(process, settings))))
}

/// Haft's MCP server, with the flags of this run and in its session.
fn own_server(runtime: &Runtime) -> Result<Value, ToolError> {
    let program =
        std::env::current_exe().map_err(|error| ToolError::io("find Haft's own program", &error))?;
    let mut args: Vec<OsString> = vec!["mcp".into(), "--workspace".into(), runtime.workspace().into()];
    args.extend(["--session".into(), runtime.session()?.into()]);
    args.extend(shared_flags());
    let args: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    Ok(json!({"command": program, "args": args, "env": Value::Object(
        variables(&HAFT_VARIABLES).map(|(name, value)| (name, value.into())).collect()
    )}))
}

/// The flags of this process that `haft mcp` has, too: rules, scope, dialect, servers.
fn shared_flags() -> Vec<OsString> {
    let given = Haft::command().try_get_matches_from(with_run(std::env::args_os().collect()).0);
    let Some((_, given)) = given.as_ref().ok().and_then(clap::ArgMatches::subcommand) else {
        return Vec::new();
    };
    let mut flags = Vec::new();
    for arg in ServeArgs::augment_args(clap::Command::new("mcp")).get_arguments() {
        let id = arg.get_id().as_str();
        let is_given = || given.value_source(id) == Some(ValueSource::CommandLine);
        if matches!(id, "workspace" | "session")
            || !matches!(given.try_contains_id(id), Ok(true))
            || !is_given()
        {
            continue;
        }
        let Some(flag) = arg.get_long().map(|long| format!("--{long}")) else { continue };
        if arg.get_action().takes_values() {
            for value in given.get_raw(id).into_iter().flatten().filter(|value| !value.is_empty()) {
                let mut word = OsString::from(format!("{flag}="));
                word.push(value);
                flags.push(word);
            }
        } else {
            flags.push(flag.into());
        }
    }
    flags
}

fn variables(names: &[&str]) -> impl Iterator<Item = (String, String)> {
    names.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
}

/// The program, by PATH. Relative entries do not count: the workspace must not provide it.
fn find_program() -> Result<PathBuf, ToolError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(PROGRAM))
        .find(|program| haft_files::id_of(program).is_some());
    found.ok_or_else(|| {
        ToolError::invalid_arguments(
            "The program `claude` was not found. Install Claude Code, or choose another provider with --provider.",
        )
    })
}

/// Starts the program and reads what it prints.
pub(super) struct ClaudeProcess {
    program: PathBuf,
    runtime: Runtime,
}

impl ClaudeProgram for ClaudeProcess {
    fn run(&self, arguments: &[String], input: &str, cancel: &Cancel) -> Result<String, ToolError> {
        let profile = AGENTS.iter().find(|agent| agent.name == PROGRAM);
        let program = self.program.to_string_lossy().into_owned();
        let process = self.runtime.start_server(&ServerLaunch {
            name: PROGRAM.to_owned(),
            argv: std::iter::once(program).chain(arguments.iter().cloned()).collect(),
            environment: variables(profile.map_or(&[], |agent| agent.variables)).collect(),
            unsandboxed: true,
            origin: format!("--provider {CLAUDE_CLI}"),
            ..ServerLaunch::default()
        })?;
        let control = Arc::clone(&process.control);
        let _stop = cancel.on_cancel(move || control.stop());
        let (mut stdin, text) = (File::from(process.input), input.to_owned());
        // A program that exits early does not read it.
        let writer = std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
        let errors = std::thread::spawn(move || error_text(process.errors));
        let output = read_bounded(File::from(process.output), MAX_OUTPUT_BYTES);
        let output = output.map_err(|error| ToolError::io("read the output of claude", &error));
        if !matches!(output, Ok(Some(_))) {
            process.control.stop();
        }
        let exit = process.control.wait(EXIT_TIMEOUT);
        let errors = errors.join().unwrap_or_default();
        drop(writer.join());
        if cancel.is_cancelled() {
            return Err(ToolError::new(ErrorKind::Interrupted, "claude was stopped"));
        }
        let output = output?.ok_or_else(|| {
            ToolError::failed(format!("it printed more than {MAX_OUTPUT_BYTES} bytes, which is the limit"))
        })?;
        let output = String::from_utf8_lossy(&output).into_owned();
        if !output.trim().is_empty() {
            return Ok(output);
        }
        let reason = exit.and_then(|exit| exit.reason).unwrap_or(errors);
        let reason = clip_chars(reason.trim(), MAX_ERROR_CHARS, 0).into_owned();
        Err(ToolError::failed(if reason.is_empty() { "it printed nothing".to_owned() } else { reason }))
    }
}

/// The beginning of the error output. The rest is read, too, so that the program does not wait.
fn error_text(errors: OwnedFd) -> String {
    let mut errors = File::from(errors);
    let mut kept = Vec::new();
    let _ = (&mut errors).take(MAX_ERROR_BYTES).read_to_end(&mut kept);
    let _ = std::io::copy(&mut errors, &mut std::io::sink());
    String::from_utf8_lossy(&kept).into_owned()
}
