//! Server processes of a session, each with a scope and a receipt of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft_ledger::CallRecord;
use haft_policy::Preset;
use haft_sandbox::{Environment, LocalProcesses, ServerProcess, start_server_process};
use haft_tool::{
    Call, Decision, Effect, Network, Record, RunRequest, Sandbox, Scope, ToolError, Value, Verdict, json,
    lock, now_ms,
};

use crate::Runtime;
use crate::build::with_presets;

/// A server process to start.
#[derive(Debug, Clone, Default)]
pub struct ServerLaunch {
    /// The server's name.
    pub name: String,
    /// The program and its arguments, without a shell.
    pub argv: Vec<String>,
    /// Its working directory; the workspace by default.
    pub cwd: Option<PathBuf>,
    /// Variables in addition to those of every command.
    pub environment: Vec<(String, String)>,
    /// Whether it may write to the workspace. It may always write temporary files.
    pub writes: bool,
    /// What it may reach over the network.
    pub network: Network,
    /// Whether its caches are its own instead of the workspace's.
    pub own_caches: bool,
    /// Whether it runs without the sandbox, by the user's settings.
    pub unsandboxed: bool,
    /// Where it is configured, for the receipt.
    pub origin: String,
}

impl Runtime {
    /// Starts a server with the scope that `launch` grants. It ends with the session.
    pub fn start_server(&self, launch: &ServerLaunch) -> Result<ServerProcess, ToolError> {
        let inner = &self.inner;
        let mut scope = Scope {
            writes: launch.writes,
            runs: true,
            network: with_presets(&launch.network, &inner.env.presets),
            ..inner.policy.rules.restrict((*inner.policy.scope).clone())
        };
        if !launch.writes {
            scope = Preset::ReadOnly.apply(scope);
        }
        if launch.unsandboxed {
            scope.sandbox = Sandbox::Off;
        }
        let call = Call::new(format!("server_{}", launch.name), "server", Value::Null);
        let mut receipt = inner.blank_receipt(&call, now_ms());
        receipt.effects = vec![Effect::Run { command: launch.argv.join(" ") }];
        receipt.input = json!({"server": launch.name, "command": launch.argv});
        receipt.decision =
            Some(Decision::new(Verdict::Allow, format!("{} configures this server", launch.origin), None));
        let record = CallRecord::new(inner.ledger(), receipt).open_task()?;
        let mut environment: Environment = (*inner.env.commands.environment).clone();
        for (name, value) in &launch.environment {
            environment = environment.with(name, value);
        }
        let mut processes =
            LocalProcesses::new(scope.workspace.clone(), environment, haft_tool::Cancel::new());
        if scope.sandbox == Sandbox::On {
            processes = processes.sandboxed(
                Arc::clone(&inner.env.commands.sandbox),
                haft_files::follow_rule_links(Arc::new(scope)),
                Arc::clone(&record),
            );
            if launch.own_caches {
                // What it downloads in one workspace can be used in all others.
                processes = processes.with_caches(&launch.argv.join(" "));
            }
        } else {
            record.unwitnessed()?;
            record.enforced("off: the server ran without the sandbox".to_owned());
            record.not_reversible("the changes of the server were not recorded".to_owned());
        }
        let request = RunRequest {
            argv: launch.argv.iter().map(Into::into).collect(),
            cwd: launch.cwd.clone(),
            timeout: Duration::MAX,
            input: Vec::new(),
            merge: false,
            inherit: false,
            keep_bytes: 0,
            quiet_stderr: false,
        };
        let process = start_server_process(&processes, request, record)?;
        let mut servers = lock(&inner.env.commands.servers);
        servers.retain(|server| server.strong_count() > 0);
        servers.push(Arc::downgrade(&process.control));
        Ok(process)
    }
}
