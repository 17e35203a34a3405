//! Runs a hook's command in the sandbox, with the session's scope, recorded like a call.

use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_compat::hooks::MAX_HOOK_OUTPUT_BYTES;
use haft_tool::{
    Call, Cancel, Effect, EffectKind, ErrorKind, Exit, JsonSchema, Output, Planned, Planning, RunRequest,
    Tool, ToolError, World, json, lock,
};
use serde::Deserialize;

use crate::Runtime;
use crate::call::{CallOptions, CallOrigin};

/// A command to run for a hook.
#[derive(Debug, Clone)]
pub struct HookCommand {
    /// The event that it is run for.
    pub event: String,
    /// The command as it is configured, for the record.
    pub configured: String,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// What it reads from standard input.
    pub input: Vec<u8>,
    /// How long it may take.
    pub timeout: Duration,
}

/// How a hook's command ended.
#[derive(Debug, Clone)]
pub struct HookCommandEnd {
    /// The exit; `None` if it was not started.
    pub exit: Option<Exit>,
    /// The beginning of its standard output: one byte more than hooks may print, so that too much output is noticed.
    pub stdout: Vec<u8>,
    /// The beginning of its standard error.
    pub stderr: Vec<u8>,
}

impl Runtime {
    /// Runs a hook's command to its end. It needs no permission, because the user configured it; its changes are recorded.
    pub fn run_hook(&self, command: HookCommand, cancel: &Cancel) -> HookCommandEnd {
        let end = Arc::new(Mutex::new(None));
        let arguments = json!({"event": command.event, "command": command.configured});
        let tool = HookTool { command, end: Arc::clone(&end) };
        let options =
            CallOptions { cancel: cancel.clone(), tool: Some(Arc::new(tool)), ..CallOptions::default() };
        let call = Call::new(self.next_call_id(), HookTool::NAME, arguments);
        let result = self.start(call, options, CallOrigin::Hook).wait_blocking();
        let ended = lock(&end).take();
        ended.unwrap_or_else(|| HookCommandEnd {
            exit: None,
            stdout: Vec::new(),
            stderr: result.output.as_text().into_bytes(),
        })
    }
}

/// Runs the command of a hook.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HookArguments {
    /// The event.
    #[expect(dead_code, reason = "it is for the record")]
    event: String,
    /// The command line.
    command: String,
}

struct HookTool {
    command: HookCommand,
    end: Arc<Mutex<Option<HookCommandEnd>>>,
}

impl Tool for HookTool {
    const NAME: &'static str = "Hook";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run];
    type Input = HookArguments;
    type Plan = ();

    fn plan(&self, input: HookArguments, _at: &Planning) -> Result<Planned<()>, ToolError> {
        Ok(Planned::new([Effect::Run { command: input.command }], ()))
    }

    fn perform(&self, (): (), world: &dyn World) -> Result<Output, ToolError> {
        let done = world.processes().run(&RunRequest {
            argv: self.command.argv.clone(),
            cwd: None,
            timeout: self.command.timeout,
            input: self.command.input.clone(),
            merge: false,
            quiet_stderr: false,
            inherit: false,
            keep_bytes: 2 * (MAX_HOOK_OUTPUT_BYTES + 1),
        })?;
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&done.stdout.head),
            String::from_utf8_lossy(&done.stderr.head)
        );
        let output = Output::text(text).with_structured(json!({"exit": done.exit.code()}));
        let exit = done.exit;
        *lock(&self.end) =
            Some(HookCommandEnd { exit: Some(exit), stdout: done.stdout.head, stderr: done.stderr.head });
        Ok(match exit {
            Exit::Code(0) => output,
            Exit::TimedOut => output.failed(ErrorKind::Timeout),
            Exit::Cancelled => output.failed(ErrorKind::Interrupted),
            _ => output.failed(ErrorKind::ExecutionFailed),
        })
    }
}
