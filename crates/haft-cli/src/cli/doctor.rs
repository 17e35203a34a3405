//! `haft doctor`: checks what Haft needs on this machine by using it.

use std::io::Write as _;
use std::path::Path;

use haft_ledger::Ledger;
use haft_policy::Preset;
use haft_sandbox::{Layer, LayerLevel};
use haft_tool::{Cancel, ErrorKind, ToolError, json};
use serde::Serialize;

use haft::selection::ToolSelection;

use super::exit::CliExit;
use super::sample::SampleProject;
use super::screen::{self, BAD, FAINT, GOOD, styled};
use super::setup::Setup;
use super::{CommandResult, args, terminal};
use crate::claude_settings::{ClaudeFiles, SettingsFlags, variable};

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

pub(super) fn run(args: &args::DoctorArgs) -> CommandResult {
    let mut checks =
        vec![version(), ledger(), workspace(&args.workspace), settings(&args.workspace), files(), commands()];
    checks.extend(layers());
    let ok = checks.iter().all(|check| check.ok);
    if args.json {
        screen::result(&serde_json::to_string_pretty(&json!({"ok": ok, "checks": checks}))?);
    } else {
        for check in &checks {
            let mark = if check.ok { styled(GOOD, "ok     ") } else { styled(BAD, "missing") };
            screen::out(&format!("{mark} {:<9} {}\n", check.name, check.detail));
            if let Some(remedy) = &check.remedy {
                screen::out(&format!("        {}\n", styled(FAINT, remedy)));
            }
        }
    }
    Ok(if ok { CliExit::Done } else { CliExit::Failed })
}

fn check(name: &'static str, tried: Result<String, ToolError>, remedy: &'static str) -> Check {
    check_steps(name, tried.map_err(|error| (error, remedy)))
}

/// A check of several steps, each with a remedy of its own.
fn check_steps(name: &'static str, tried: Result<String, (ToolError, &'static str)>) -> Check {
    match tried {
        Ok(detail) => Check { name, ok: true, detail, remedy: None },
        Err((error, remedy)) => {
            Check { name, ok: false, detail: error.message, remedy: Some(remedy.to_owned()) }
        }
    }
}

/// For `map_err`: the error with what to do about it.
fn with(remedy: &'static str) -> impl Fn(ToolError) -> (ToolError, &'static str) {
    move |error| (error, remedy)
}

fn version() -> Check {
    let detail =
        format!("haft {} on {} {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    Check { name: "version", ok: true, detail, remedy: None }
}

fn ledger() -> Check {
    let tried = || {
        let open = || Ledger::open(Ledger::home_from_env()?);
        let ledger = open().map_err(with(OPEN_REMEDY))?;
        ledger.check().map_err(with(DAMAGE_REMEDY))?;
        try_to_write(ledger.home()).map_err(with(SPACE_REMEDY))?;
        let stats = ledger.stats().map_err(with(DAMAGE_REMEDY))?;
        let place = ledger.home().display().to_string();
        Ok(format!(
            "{place}: {} in {}, {}",
            screen::count(stats.receipts, "call"),
            screen::count(stats.sessions, "session"),
            screen::bytes(stats.bytes)
        ))
    };
    check_steps("ledger", tried())
}

const OPEN_REMEDY: &str = "set HAFT_HOME to another private directory that you can write";
const DAMAGE_REMEDY: &str = "move the directory away, or set HAFT_HOME to another one: new calls work then, but what is recorded here cannot be undone";
const SPACE_REMEDY: &str = "make room on this disk; `haft gc --max-size SIZE` removes the oldest calls";

/// How much the ledger's disk must have room for: a call or two.
const TRIAL_BYTES: usize = 1 << 20;

/// Writes a file beside the ledger, as a call does.
fn try_to_write(home: &Path) -> Result<(), ToolError> {
    let failed = |error| ToolError::io(format!("{} cannot be written", home.display()), &error);
    let mut file = tempfile::tempfile_in(home).map_err(failed)?;
    file.write_all(&vec![0; TRIAL_BYTES]).and_then(|()| file.sync_all()).map_err(failed)
}

/// Reads the settings files of Haft and of Claude Code, and says what of them is not in force.
fn settings(at: &args::WorkspaceArgs) -> Check {
    let tried = || {
        let setup = Setup::load_for_calls(at, &args::RuleArgs::default())?;
        let files = ClaudeFiles::read(setup.workspace(), &SettingsFlags::default(), &variable)?;
        let rules = setup.builder().build()?.rules().iter().count();
        let hooks = setup.claude.hooks.count();
        let own = setup.config.path().map(|file| file.display().to_string());
        let read: Vec<String> =
            own.into_iter().chain(files.files.iter().map(|file| file.origin.clone())).collect();
        let from = if read.is_empty() { "no file".to_owned() } else { read.join(", ") };
        let count = |count: usize, noun| screen::count(u64::try_from(count).unwrap_or(u64::MAX), noun);
        Ok(format!("{}, {} from {from}", count(rules, "rule"), count(hooks, "hook")))
    };
    check("settings", tried(), SETTINGS_REMEDY)
}

/// Builds what a call here would use, from the user's settings and rules, and runs a command in the workspace that does nothing.
fn workspace(at: &args::WorkspaceArgs) -> Check {
    let tried = || {
        at.project().map_err(with(PLACE_REMEDY))?;
        let setup = Setup::load(at).map_err(with(SETTINGS_REMEDY))?;
        let builder = || {
            let none = args::RuleArgs::default();
            let bash = ToolSelection::new("claude", Some(&["Bash".to_owned()]), &setup.config.values.tools)?;
            let builder = setup.scope(&args::ScopeArgs::default(), bash.into_builder(setup.builder()))?;
            Ok::<_, ToolError>(setup.rules(&none, builder).allow("Bash", "haft doctor"))
        };
        let build = || builder()?.build();
        let runtime = build().map_err(with(PLACE_REMEDY))?;
        screen::warnings(runtime.warnings());
        let is_to_be_written = setup.config.values.sandbox.preset.unwrap_or_default() == Preset::Workspace;
        if is_to_be_written && !haft_files::is_writable(runtime.workspace()) {
            let why =
                format!("{} is read-only: calls can change nothing here", runtime.workspace().display());
            return Err((
                ToolError::failed(why),
                "make it writable for this user, or name another one with --workspace DIR",
            ));
        }
        // Not in the user's ledger, which is for calls that the user made.
        let run = || {
            let home =
                tempfile::tempdir().map_err(|error| ToolError::io("create a temporary directory", &error))?;
            let trial = builder()?.home(home.path()).build()?;
            let result = terminal::wait(&Cancel::new(), trial.call("Bash", json!({"command": "true"})))?;
            trial.clear_session_directories();
            Ok(result)
        };
        let result = run().map_err(with(PLACE_REMEDY))?;
        match result.output.error_kind {
            // A rule of the user's own.
            None | Some(ErrorKind::PermissionDenied) => Ok(runtime.workspace().display().to_string()),
            Some(_) => Err(with(PLACE_REMEDY)(ToolError::failed(result.output.as_text()))),
        }
    };
    check_steps("workspace", tried())
}

const PLACE_REMEDY: &str = "no call works here until this is solved; --workspace DIR names another directory";
const SETTINGS_REMEDY: &str = "correct the file; no call works until then";

/// Writes a file in a private directory and undoes the write, through the pipeline.
fn files() -> Check {
    let tried = || {
        let sample = SampleProject::new("doctor")?;
        let runtime = &sample.runtime;
        let file = runtime.workspace().join("check.txt");
        let cancel = Cancel::new();
        terminal::wait(&cancel, async {
            let result = runtime.call("Write", json!({"file_path": file, "content": "a\n"})).await;
            if result.output.is_error() {
                return Err(ToolError::failed(result.output.as_text()));
            }
            let preview = runtime.undo_preview(&haft_runtime::UndoTarget::Last)?;
            let undone = runtime.undo(&preview, false, haft_runtime::CallOptions::default()).await?;
            if undone.output.is_error() { Err(ToolError::failed(undone.output.as_text())) } else { Ok(()) }
        })??;
        Ok(format!("written, recorded and undone; contained by {}", haft_files::containment()))
    };
    check("files", tried(), "check that the temporary directory ($TMPDIR) is writable")
}

fn commands() -> Check {
    let tried = || {
        let sample = SampleProject::new("doctor")?;
        let runtime = &sample.runtime;
        let cancel = Cancel::new();
        // The user may write there, so that only the sandbox can refuse it.
        let outside = sample.home.path().join("outside");
        let command = format!(
            "echo $BASH_VERSION; echo kept > kept; echo x 2>/dev/null > {} && echo written",
            outside.display()
        );
        let result = terminal::wait(&cancel, runtime.call("Bash", json!({"command": command})))?;
        runtime.clear_session_directories();
        let structured = result.output.structured.clone().unwrap_or_default();
        if structured["exitCode"].is_null() {
            return Err(ToolError::failed(result.output.as_text()));
        }
        let text = result.output.as_text();
        let bash = text.lines().next().unwrap_or_default().to_owned();
        let refused = !text.lines().any(|line| line == "written");
        let recorded = result.receipt.changes.iter().any(|change| change.path.ends_with("kept"));
        if !refused || !recorded {
            return Err(ToolError::failed(format!(
                "bash {bash} runs, but is not sandboxed (write refused: {refused}, change recorded: {recorded})"
            )));
        }
        let how = result.receipt.enforcement.unwrap_or_default();
        Ok(format!("bash {bash}: changes recorded, write outside the scope refused ({how})"))
    };
    check("commands", tried(), "install bash; the kernel checks below say what is missing")
}

/// The kernel features that confine commands.
fn layers() -> Vec<Check> {
    let status = haft_sandbox::probe();
    let layers = status.layers.into_iter().map(|layer| {
        let ok = !matches!(layer.level, LayerLevel::None { .. });
        let detail = Layer { remedy: None, ..layer.clone() }.to_string();
        Check { name: "sandbox", ok, detail, remedy: layer.remedy.clone() }
    });
    layers.collect()
}
