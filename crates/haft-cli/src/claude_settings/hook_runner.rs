//! Runs the hooks of the settings.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_compat::hooks::{HookContext, HookEnd, HookEvent, HookExit, HookInput, HookMatcher, HookOutcome};
use haft_compat::settings::{HookAction, HookHandler, HookSettings};
use haft_files::read_named;
use haft_policy::Mode;
use haft_runtime::{HookCommand, HookCommandEnd, Hooks, Runtime};
use haft_tool::{Call, Cancel, EffectKind, Exit, ToolError, lock};

/// How long a hook may take by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// The same at the end of a session, for which people and programs wait.
const END_TIMEOUT: Duration = Duration::from_millis(1_500);

/// The largest file that is looked for in the command of a hook.
const MAX_SCRIPT_BYTES: u64 = 16 << 20;

/// A hook that is not a command: an answer of the program that drives Haft.
pub(crate) trait HostHook: Send + Sync {
    /// What it decides about an event.
    fn decide(
        &self,
        event: &HookEvent,
        input: &HookInput,
        context: &HookContext<'_>,
        cancel: &Cancel,
    ) -> HookOutcome;
}

/// What runs for an event.
#[derive(Clone)]
enum HookTarget {
    Handler { handler: HookHandler, origin: String },
    Host(Arc<dyn HostHook>),
}

/// One hook with its matcher.
#[derive(Clone)]
struct ConfiguredHook {
    event: HookEvent,
    matcher: HookMatcher,
    target: HookTarget,
}

/// All hooks of a session, in the order of their settings.
#[derive(Clone, Default)]
pub(crate) struct ConfiguredHooks {
    hooks: Vec<ConfiguredHook>,
    /// Those that run only once and have.
    done: Arc<Mutex<HashSet<usize>>>,
}

impl ConfiguredHooks {
    /// Adds the hooks of a file.
    pub(crate) fn add(&mut self, settings: &HookSettings, origin: &str) {
        for event in &settings.events {
            for group in &event.groups {
                for handler in &group.handlers {
                    if !matches!(handler.value.action, HookAction::Command { .. }) {
                        continue;
                    }
                    let origin = format!("{origin}:{}", handler.line);
                    self.hooks.push(ConfiguredHook {
                        event: event.event.value.clone(),
                        matcher: group.matcher.value.clone(),
                        target: HookTarget::Handler { handler: handler.value.clone(), origin },
                    });
                }
            }
        }
    }

    /// Adds a hook of the program that drives Haft.
    pub(crate) fn add_host(&mut self, event: HookEvent, matcher: &str, hook: Arc<dyn HostHook>) {
        let matcher = HookMatcher::new(matcher, &event);
        self.hooks.push(ConfiguredHook { event, matcher, target: HookTarget::Host(hook) });
    }

    /// The files of the workspace that hooks run or read, as their commands name them, each with the place of the hook. To
    /// change them is to change what runs.
    pub(crate) fn files_in(&self, workspace: &Path) -> Vec<(PathBuf, String)> {
        let mut files = Vec::new();
        for hook in &self.hooks {
            let HookTarget::Handler { handler, origin } = &hook.target else { continue };
            let HookAction::Command { command, arguments } = &handler.action else { continue };
            let texts = std::iter::once(command).chain(arguments.iter().flatten());
            let is_end = |c: char| c.is_whitespace() || "\"'`;|&()<>=".contains(c);
            for word in texts.flat_map(|text| text.split(is_end)) {
                let word = word
                    .trim_start_matches("${CLAUDE_PROJECT_DIR}")
                    .trim_start_matches("$CLAUDE_PROJECT_DIR");
                // `$CLAUDE_PROJECT_DIR/scripts/check.sh`, an absolute path, or one from the workspace.
                let below = if word.starts_with(&*workspace.to_string_lossy()) {
                    word
                } else {
                    word.trim_start_matches('/')
                };
                let path = workspace.join(below);
                if !below.is_empty()
                    && path.starts_with(workspace)
                    && read_named(&path, MAX_SCRIPT_BYTES).is_ok()
                {
                    files.push((path, origin.clone()));
                }
            }
        }
        files
    }

    pub(crate) fn count(&self) -> usize {
        self.hooks.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// Whether a hook is to run now: its condition holds, and it has not run if it runs only once.
    fn is_due(&self, number: usize, hook: &ConfiguredHook, input: &HookInput, runtime: &Runtime) -> bool {
        let HookTarget::Handler { handler, .. } = &hook.target else { return true };
        if let Some(condition) = &handler.condition
            && !call_of(input).is_none_or(|call| runtime.may_match_rule(&call, &condition.value))
        {
            return false;
        }
        !handler.once || lock(&self.done).insert(number)
    }
}

impl Hooks for ConfiguredHooks {
    fn has(&self, event: &HookEvent) -> bool {
        self.hooks.iter().any(|hook| hook.event == *event)
    }

    fn run(&self, runtime: &Runtime, input: &HookInput, cancel: &Cancel) -> HookOutcome {
        let event = input.event();
        let subjects = subjects(input, runtime);
        let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
        let due: Vec<&ConfiguredHook> = (0..)
            .zip(&self.hooks)
            .filter(|(_, hook)| hook.event == event && hook.matcher.matches(&subjects))
            .filter(|(number, hook)| self.is_due(*number, hook, input, runtime))
            .map(|(_, hook)| hook)
            .collect();
        let run = |hook: &ConfiguredHook| run_hook(hook, &event, runtime, input, cancel);
        if let [only] = due.as_slice() {
            return HookOutcome::merge([run(only)]);
        }
        let outcomes = std::thread::scope(|scope| {
            let running: Vec<_> = due.iter().map(|hook| scope.spawn(|| run(hook))).collect();
            let failed = |_| HookOutcome::failed(&event, "the hook's thread panicked".to_owned(), None);
            running.into_iter().map(|thread| thread.join().unwrap_or_else(failed)).collect::<Vec<_>>()
        });
        HookOutcome::merge(outcomes)
    }
}

/// The names by which a matcher may mean the subject of an event. In another dialect than Claude's, a tool that runs commands is
/// also meant by `Bash`, one that writes files by `Edit` and `Write`, one that reads them by `Read`.
fn subjects(input: &HookInput, runtime: &Runtime) -> Vec<String> {
    let Some(subject) = input.subject() else { return Vec::new() };
    let mut all = vec![subject.to_owned()];
    if call_of(input).is_none() {
        return all;
    }
    match subject {
        "Agent" => all.push("Task".to_owned()),
        "Task" => all.push("Agent".to_owned()),
        // A tool of Claude Code's own dialect.
        tool if tool.starts_with(|c: char| c.is_ascii_uppercase()) => {}
        tool => {
            for kind in runtime.declared_effects(tool) {
                let names: &[&str] = match kind {
                    EffectKind::Run => &["Bash"],
                    EffectKind::Write => &["Edit", "Write"],
                    EffectKind::Read => &["Read"],
                    _ => &[],
                };
                all.extend(names.iter().map(|name| (*name).to_owned()));
            }
        }
    }
    all
}

/// The call that an event is about.
fn call_of(input: &HookInput) -> Option<Call> {
    match input {
        HookInput::PreToolUse { tool_name, tool_input, .. }
        | HookInput::PostToolUse { tool_name, tool_input, .. }
        | HookInput::PostToolUseFailure { tool_name, tool_input, .. }
        | HookInput::PermissionRequest { tool_name, tool_input, .. }
        | HookInput::PermissionDenied { tool_name, tool_input, .. } => {
            Some(Call::new("hooked", tool_name, tool_input.clone()))
        }
        _ => None,
    }
}

fn run_hook(
    hook: &ConfiguredHook,
    event: &HookEvent,
    runtime: &Runtime,
    input: &HookInput,
    cancel: &Cancel,
) -> HookOutcome {
    let session = runtime.session().unwrap_or_default();
    let workspace = runtime.workspace().display().to_string();
    let context = HookContext {
        session_id: &session,
        transcript_path: "",
        cwd: &workspace,
        permission_mode: Some(claude_mode(runtime.mode())),
        agent_id: runtime.agent_name(),
        ..HookContext::default()
    };
    let (handler, origin) = match &hook.target {
        HookTarget::Host(host) => return host.decide(event, input, &context, cancel),
        HookTarget::Handler { handler, origin } => (handler, origin),
    };
    let command = match command(handler, event, &workspace, &input.to_json(&context)) {
        Ok(command) => command,
        Err(error) => return HookOutcome::failed(event, error.message, handler.on_failure),
    };
    if handler.is_async {
        let (runtime, cancel) = (runtime.clone(), cancel.clone());
        // Without a thread it runs at once, which is only slower.
        let detached = std::thread::Builder::new()
            .name("haft-hook".to_owned())
            .spawn(move || drop(runtime.run_hook(command, &cancel)));
        let mut outcome = HookOutcome::default();
        outcome
            .failures
            .extend(detached.err().map(|error| format!("{origin}: the hook was not started: {error}")));
        return outcome;
    }
    let ended = runtime.run_hook(command, cancel);
    let mut outcome = HookOutcome::read(event, &exit_of(&ended), handler.on_failure);
    for failure in &mut outcome.failures {
        *failure = format!("{origin}: {failure}");
    }
    outcome
}

fn command(
    handler: &HookHandler,
    event: &HookEvent,
    workspace: &str,
    input: &serde_json::Map<String, serde_json::Value>,
) -> Result<HookCommand, ToolError> {
    let HookAction::Command { command, arguments } = &handler.action else {
        return Err(ToolError::internal("only commands are configured as hooks"));
    };
    let variable = OsString::from(format!("CLAUDE_PROJECT_DIR={workspace}"));
    let mut argv: Vec<OsString> = vec!["env".into(), variable];
    match arguments {
        None => argv.extend(["sh".into(), "-c".into(), command.into()]),
        Some(words) => argv.extend(std::iter::once(command).chain(words).map(OsString::from)),
    }
    Ok(HookCommand {
        event: event.name().to_owned(),
        configured: std::iter::once(command)
            .chain(arguments.iter().flatten())
            .cloned()
            .collect::<Vec<_>>()
            .join(" "),
        argv,
        input: serde_json::to_vec(input)?,
        timeout: match event {
            HookEvent::SessionEnd => handler.timeout.unwrap_or(END_TIMEOUT).min(END_TIMEOUT),
            _ => handler.timeout.unwrap_or(DEFAULT_TIMEOUT),
        },
    })
}

fn exit_of(ended: &HookCommandEnd) -> HookExit<'_> {
    let end = match ended.exit {
        None => HookEnd::NotStarted,
        Some(Exit::Code(code)) => HookEnd::Code(code),
        Some(Exit::Signal(signal)) => HookEnd::Signal(signal),
        Some(Exit::TimedOut | Exit::Cancelled) => HookEnd::TimedOut,
    };
    HookExit { end, stdout: &ended.stdout, stderr: &ended.stderr }
}

/// Claude Code's name for a mode. Its `auto` is the nearest to Haft's own.
pub(crate) const fn claude_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Scoped => "auto",
        mode => mode.name(),
    }
}
