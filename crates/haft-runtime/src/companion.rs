//! Servers of somebody else's beside the session: held to a scope of their own, each with a receipt.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use haft_ledger::CallRecord;
use haft_policy::Preset;
use haft_sandbox::{Companion, Environment, LocalProcesses, accompany};
use haft_tool::{
    Call, Decision, Effect, Network, Record, RunRequest, Sandbox, Scope, ToolError, Value, Verdict, json,
    lock, now_ms,
};

use crate::Runtime;

/// A server to start.
#[derive(Debug, Clone, Default)]
pub struct Order {
    /// What it is called.
    pub name: String,
    /// The program and its arguments; no shell reads them.
    pub argv: Vec<String>,
    /// Where it runs; the workspace if nothing is said.
    pub cwd: Option<PathBuf>,
    /// Variables that it gets besides those that every command gets.
    pub environment: Vec<(String, String)>,
    /// Whether it may write the workspace; it may write its own temporary files in any case.
    pub writes: bool,
    /// What it may reach.
    pub network: Network,
    /// Whether nobody holds it, because the user said so.
    pub unheld: bool,
    /// Who wants it started, for the receipt.
    pub origin: String,
}

impl Runtime {
    /// Starts a server, held to what `order` grants it and nothing else. It ends with the session.
    pub fn accompany(&self, order: &Order) -> Result<Companion, ToolError> {
        let inner = &self.inner;
        let mut scope = Scope {
            writes: order.writes,
            runs: true,
            network: order.network.clone(),
            ..(*inner.policy.scope).clone()
        };
        if !order.writes {
            scope = Preset::ReadOnly.apply(scope);
        }
        if order.unheld {
            scope.sandbox = Sandbox::Off;
        }
        let call = Call::new(format!("server_{}", order.name), "server", Value::Null);
        let mut receipt = inner.blank_receipt(&call, now_ms());
        receipt.effects = vec![Effect::Run { command: order.argv.join(" ") }];
        receipt.input = json!({"server": order.name, "command": order.argv});
        receipt.decision = Some(Decision {
            verdict: Verdict::Allow,
            reason: format!("{} asks for this server", order.origin),
            rule: None,
        });
        let record = CallRecord::new(inner.ledger(), receipt).open_task()?;
        let mut environment: Environment = (*inner.ground.environment).clone();
        for (name, value) in &order.environment {
            environment = environment.with(name, value);
        }
        let mut processes =
            LocalProcesses::new(scope.workspace.clone(), environment, haft_tool::Cancel::new());
        if scope.sandbox == Sandbox::On {
            processes =
                processes.held(Arc::clone(&inner.ground.enclosure), Arc::new(scope), Arc::clone(&record));
        } else {
            record.enforced("off: nobody held the server to its scope".to_owned());
            record.not_reversible("what the server changed was not watched".to_owned());
        }
        let request = RunRequest {
            argv: order.argv.clone(),
            cwd: order.cwd.clone(),
            timeout: Duration::MAX,
            merge: false,
            inherit: false,
            keep_bytes: 0,
        };
        let companion = accompany(&processes, request, record)?;
        let mut companions = lock(&inner.companions);
        companions.retain(|life| life.strong_count() > 0);
        companions.push(Arc::downgrade(&companion.life));
        Ok(companion)
    }
}

impl crate::runtime::RuntimeInner {
    /// Ends every server, and waits until they are gone.
    pub(crate) fn end_companions(&self) {
        let lives = std::mem::take(&mut *lock(&self.companions));
        let lives: Vec<_> = lives.iter().filter_map(Weak::upgrade).collect();
        for life in &lives {
            life.end();
        }
        for life in lives {
            life.wait(PATIENCE);
        }
    }
}

/// How long a server may take to end; its keeper forces it long before.
const PATIENCE: Duration = Duration::from_secs(30);
