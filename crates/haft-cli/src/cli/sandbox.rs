//! `haft sandbox`: runs any command in the sandbox, recorded and reversible.

use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_files::read_named;
use haft_ledger::Ledger;
use haft_runtime::{Builder, CallOptions, CallResult, Watch};
use haft_sandbox::SandboxOptions;
use haft_tool::{
    Call, Cancel, Effect, EffectKind, ErrorKind, Execution, Exit, JsonSchema, Node, Output, Planned,
    Planning, PreviewedChange, RunRequest, Tool, ToolError, Verdict, World, json, lock,
};
use serde::Deserialize;

use super::diff::{FileDiff, diff};
use super::exit::CliExit;
use super::kept_preview::{self, PreviewThen};
use super::screen::{self, FAINT, NOTE, styled};
use super::setup::Setup;
use super::{CommandResult, agent, args, call, housekeeping, terminal};

/// Haft failed before the command could, as env(1) says it.
pub(super) const HAFT_FAILED: CliExit = CliExit::Other(125);
const NOT_EXECUTABLE: CliExit = CliExit::Other(126);
const NOT_FOUND: CliExit = CliExit::Other(127);

/// How much of the output is kept for --json.
const MAX_CAPTURED_BYTES: usize = 8 << 20;

/// Larger files are compared by size only.
const MAX_PREVIEWED_BYTES: u64 = 1 << 20;

/// Where what detached commands write goes, in Haft's home.
pub(super) const DETACHED: &str = "detached";

pub(super) fn run(args: &args::SandboxArgs) -> CliExit {
    let done = if args.detach { leave_running(args) } else { run_command(args) };
    done.unwrap_or_else(|error| {
        super::report_error(&error);
        HAFT_FAILED
    })
}

fn run_command(args: &args::SandboxArgs) -> CommandResult {
    let setup = Setup::load(&args.workspace)?;
    let argv = args.agent.map_or_else(|| args.command.clone(), |agent| agent::command(agent, &args.command));
    let command: Vec<String> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let tool = SandboxTool { argv, previewed: Arc::default(), captures: args.json };
    let previewed = Arc::clone(&tool.previewed);
    let builder = scoped(&setup, args)?.tool(tool);
    let builder = args.session.apply(builder);
    name_dropped_variables(&setup, args);
    let builder =
        builder.allow(SandboxTool::NAME, "named on the command line").asker(terminal::asker(&setup));
    // This process ends with the command, and the kernel takes everything down faster than we could.
    let runtime = ManuallyDrop::new(builder.build()?);
    screen::warnings(runtime.warnings());
    let cancel = Cancel::new();
    let arguments =
        json!({"command": command, "timeout_ms": args.timeout, "preview": is_tried(args).then_some(true)});
    let call = Call::new("call_1", SandboxTool::NAME, arguments);
    let shown = Arc::new(Mutex::new(Vec::new()));
    let watch = show_refusals(Arc::clone(&shown));
    let options = CallOptions { cancel: cancel.clone(), watch: Some(watch), ..CallOptions::default() };
    terminal::cancel_on_signal(&cancel, !args.json && terminal::is_interactive())?;
    let result = runtime.run_blocking(call, options);
    if let Some(changes) = lock(&previewed).take() {
        show_preview(&changes, runtime.workspace());
    }
    for login in runtime.keep_logins() {
        screen::note(&format!(
            "the renewed login was kept: {}",
            screen::escape(&login.display().to_string())
        ));
    }
    runtime.clear_session_directories();
    housekeeping::run_if_due(runtime.ledger(), &setup.config.values.ledger);

    if args.json {
        screen::result(&call::as_json(&result).to_string());
        return Ok(exit_of(&result));
    }
    let structured = result.output.structured.as_ref();
    let shown = std::mem::take(&mut *lock(&shown));
    for line in structured.and_then(|all| all["facts"].as_array()).into_iter().flatten() {
        let line = line.as_str().unwrap_or_default();
        if !shown.contains(&without_count(line)) {
            screen::note(&styled(NOTE, &screen::sanitize(line)));
        }
    }
    if let Some(limit) = args.timeout.filter(|_| result.output.error_kind == Some(ErrorKind::Timeout)) {
        let limit = screen::took(limit.saturating_mul(1_000));
        screen::note(&styled(NOTE, &format!("The command was ended after {limit} (--timeout)")));
    }
    let receipt = &result.receipt;
    if let Some(then) = args.preview.filter(|_| !is_tried(args)) {
        kept_preview::keep_or_undo(&runtime, receipt, then)?;
    } else if !receipt.changes.is_empty() && terminal::is_interactive() {
        let (id, count) = (receipt.id, receipt.changes.len() as u64);
        screen::note(&styled(
            FAINT,
            &format!("Call {id} made {}. To undo it: haft undo {id}", screen::count(count, "change")),
        ));
    }
    if structured.is_none_or(|all| all["exit"].is_null()) {
        screen::error(&result.output.as_text());
    }
    Ok(exit_of(&result))
}

/// The exit code of the command, or why it was not started.
fn exit_of(result: &CallResult) -> CliExit {
    let structured = result.output.structured.as_ref();
    if let Some(number) = structured.and_then(|all| all["exit"].as_i64()) {
        return CliExit::Other(u8::try_from(number).unwrap_or(u8::MAX));
    }
    let decision = result.receipt.decision.as_ref();
    let allowed = decision.is_some_and(|decision| decision.verdict == Verdict::Allow);
    match result.output.error_kind {
        Some(ErrorKind::FileNotFound) => NOT_FOUND,
        Some(ErrorKind::PermissionDenied) if allowed => NOT_EXECUTABLE,
        Some(ErrorKind::Interrupted) => CliExit::Interrupted,
        _ => HAFT_FAILED,
    }
}

/// Whether the command's changes are shown and thrown away.
fn is_tried(args: &args::SandboxArgs) -> bool {
    args.preview.is_some_and(PreviewThen::is_discard)
}

/// The builder with the scope of the command.
fn scoped(setup: &Setup, args: &args::SandboxArgs) -> Result<Builder, ToolError> {
    let is_tried = is_tried(args);
    let Some(profile) = args.agent else {
        return setup.scope_with(&args.scope, |options| options.preview = is_tried, setup.builder());
    };
    let flags = agent::with_agent(&args.scope, profile, setup.network().0);
    let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect();
    let set_options = |options: &mut SandboxOptions| {
        options.preview = is_tried;
        options.home_copies = paths(profile.settings);
        options.home_logins = paths(profile.logins);
        options.own_hosts.extend(agent::base_url_hosts(profile));
    };
    setup.scope_with(&flags, set_options, setup.builder())
}

/// Shows refusals while the command runs, and keeps what was shown. Nothing is written over a full-screen program;
/// there they are shown at the end.
fn show_refusals(shown: Arc<Mutex<Vec<String>>>) -> Watch {
    Arc::new(move |execution| {
        let Execution::Running { progress: Some(progress), .. } = execution else { return };
        for line in progress.message.iter().filter(|_| !terminal::is_drawn_on()).flat_map(|text| text.lines())
        {
            screen::note(&styled(NOTE, &screen::sanitize(line)));
            lock(&shown).push(line.to_owned());
        }
    })
}

/// The line of a refusal without the number of attempts.
fn without_count(line: &str) -> String {
    let count = line.find(" times): ").and_then(|end| Some((line[..end].rfind(" (")?, end)));
    match count {
        Some((start, end)) => format!("{}{}", &line[..start], &line[end + " times)".len()..]),
        None => line.to_owned(),
    }
}

/// Shows what a command would have changed.
fn show_preview(changes: &[PreviewedChange], workspace: &Path) {
    let read =
        |path: &Path, node: &Node| node.as_file().and_then(|_| read_named(path, MAX_PREVIEWED_BYTES).ok());
    for change in changes {
        let (before, after) = (read(&change.path, &change.before), read(&change.content, &change.after));
        let path = change.path.strip_prefix(workspace).unwrap_or(&change.path);
        screen::out(&diff(&FileDiff {
            path: &path.display().to_string(),
            from: (&change.before, before.as_deref()),
            to: (&change.after, after.as_deref()),
        }));
    }
    let count = screen::count(changes.len() as u64, "path");
    screen::note(&styled(NOTE, &format!("Nothing was changed. Without --preview {count} would be.")));
}

/// Mentions variables that the command line names and that are set, but not passed to the command.
fn name_dropped_variables(setup: &Setup, args: &args::SandboxArgs) {
    let flags = args.agent.map(|agent| agent::with_agent(&args.scope, agent, Vec::new()));
    let Ok(passed) = setup.environment(flags.as_ref().unwrap_or(&args.scope)) else { return };
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let command: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let mut named: Vec<&str> = command.iter().flat_map(|text| text.split(|c| !is_word(c))).collect();
    named.sort_unstable();
    named.dedup();
    named.retain(|name| !name.is_empty() && std::env::var_os(name).is_some() && passed.get(name).is_none());
    if !named.is_empty() {
        let flags: Vec<String> = named.iter().map(|name| format!("--env {name}")).collect();
        let verb = if named.len() == 1 { "is" } else { "are" };
        let text = format!(
            "{} {verb} set, but not passed to the command; to pass it on: {}",
            named.join(", "),
            flags.join(" ")
        );
        screen::note(&format!("{}: {text}", styled(NOTE, "note")));
    }
}

/// Has another Haft run the command, and leaves both to themselves.
fn leave_running(args: &args::SandboxArgs) -> CommandResult {
    // What is wrong with the flags or the settings is told here and not in a file.
    let setup = Setup::load(&args.workspace)?;
    scoped(&setup, args)?.build()?;
    let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(flag) = arguments.iter().position(|argument| argument == "--detach") {
        arguments.remove(flag);
    }
    let home = Ledger::home_from_env()?;
    // The same goes for a ledger that cannot be opened.
    Ledger::open(&home)?;
    let not_started = |error| ToolError::io("The command cannot be started in the background", &error);
    let mut left = haft_sandbox::spawn_detached(arguments, &[], &home.join(DETACHED)).map_err(not_started)?;
    if let Err(code) = left.wait_started().map_err(not_started)? {
        let said = read_named(&left.output, MAX_CAPTURED_BYTES as u64)?;
        screen::prompt(&screen::sanitize(&String::from_utf8_lossy(&said)));
        return Ok(CliExit::Other(u8::try_from(code).unwrap_or(u8::MAX)));
    }
    let (process, output) = (left.pid, left.output.display());
    screen::result(&format!("process {process} goes on and writes to {output}; end it with: kill {process}"));
    Ok(CliExit::Done)
}

/// Runs a command with Haft's own streams.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The program and its arguments.
    command: Vec<String>,
    /// Milliseconds until it is ended.
    timeout_ms: Option<u64>,
    /// Whether its changes are shown and thrown away.
    #[expect(dead_code, reason = "it is for the record")]
    preview: Option<bool>,
}

struct SandboxTool {
    /// The command itself: what is recorded is text, and an argument need not be.
    argv: Vec<OsString>,
    /// What the command would have changed, if it was only tried.
    previewed: Arc<Mutex<Option<Vec<PreviewedChange>>>>,
    /// Whether its output is kept instead of passed through.
    captures: bool,
}

impl Tool for SandboxTool {
    const NAME: &'static str = "Sandbox";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run];
    type Input = Input;
    type Plan = Input;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Input>, ToolError> {
        Ok(Planned::new([Effect::Run { command: input.command.join(" ") }], input))
    }

    fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let done = world.processes().run(&RunRequest {
            argv: self.argv.clone(),
            cwd: None,
            timeout: input.timeout_ms.map_or(Duration::MAX, Duration::from_millis),
            input: Vec::new(),
            merge: self.captures,
            quiet_stderr: false,
            inherit: !self.captures,
            keep_bytes: if self.captures { MAX_CAPTURED_BYTES } else { 0 },
        })?;
        let facts = done.facts(usize::MAX);
        lock(&self.previewed).clone_from(&done.previewed);
        let said = match done.exit {
            Exit::Code(number) => format!("Exit code {number}"),
            Exit::Signal(signal) => format!("Ended by signal {signal}"),
            Exit::TimedOut => "Timed out".to_owned(),
            Exit::Cancelled => "Cancelled".to_owned(),
        };
        let text = if self.captures { done.stdout.into_text() } else { said.into() };
        let output = Output::text(text).with_structured(json!({
            "exit": done.exit.code(),
            "durationMs": u64::try_from(done.elapsed.as_millis()).unwrap_or(u64::MAX),
            "denials": done.denials,
            "runsOnBuild": done.runs_on_build,
            "facts": facts,
        }));
        Ok(match done.exit {
            Exit::Code(0) => output,
            Exit::TimedOut => output.failed(ErrorKind::Timeout),
            Exit::Cancelled => output.failed(ErrorKind::Interrupted),
            _ => output.failed(ErrorKind::ExecutionFailed),
        })
    }
}
