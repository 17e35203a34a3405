//! The runtime of a subagent: a session of its own, with the tools, scope, rules and commands of its parent.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use haft_ledger::{NewSession, SessionChoice};
use haft_policy::{Mode, Policy};
use haft_tool::{Host, ToolError, TraceContext};

use crate::Runtime;
use crate::history::History;
use crate::runtime::{RuntimeInner, SessionTrace};
use crate::world::SessionEnv;

/// What distinguishes a subagent from its parent.
pub struct AgentSession {
    /// Its name, for questions to the user.
    pub name: String,
    /// The session to continue; a new one if there is none.
    pub session: Option<String>,
    /// Its entry point in the ledger.
    pub entry_point: String,
    /// Its mode, which must be within the parent's.
    pub mode: Mode,
    /// What its tools need beyond a machine.
    pub host: Arc<dyn Host>,
    /// The span of the call that starts it.
    pub trace: Option<TraceContext>,
}

/// The agent that makes the calls of a runtime.
pub(crate) struct AgentOwner {
    pub(crate) name: String,
    /// Keeps alive the commands that both share.
    _parent: Runtime,
}

impl Runtime {
    /// The current mode: how much runs without a question.
    pub fn mode(&self) -> Mode {
        let policy = &self.inner.policy;
        self.inner.env.grants.applied(policy).map_or(policy.mode, |policy| policy.mode)
    }

    /// Changes the mode for calls that begin from now on. Only the user may do this. Fails if the settings forbid the mode.
    pub fn set_mode(&self, mode: Mode) -> Result<(), ToolError> {
        if mode == Mode::BypassPermissions && self.inner.env.grants.forbids_bypass {
            return Err(ToolError::denied("the settings forbid the mode bypassPermissions"));
        }
        self.inner.env.grants.set_mode(mode);
        Ok(())
    }

    /// Adds a rule that allows calls until this runtime ends. Only the user may do this.
    pub fn allow_rule(&self, rule: &str, origin: &str) -> Result<(), ToolError> {
        self.inner.env.grants.add_rule(rule, origin).map(drop)
    }

    /// The name of the dialect.
    pub fn dialect(&self) -> &str {
        self.inner.ledger.dialect()
    }

    /// The runtime of a subagent. It can touch nothing that this one cannot.
    pub fn for_agent(&self, agent: AgentSession) -> Result<Self, ToolError> {
        let parent = &self.inner;
        if !agent.mode.is_within(self.mode()) {
            return Err(ToolError::denied(format!(
                "mode: {} allows more than {}, the mode of this run. Leave it out",
                agent.mode,
                self.mode()
            )));
        }
        let new = NewSession {
            workspace: parent.env.planning.workspace.clone(),
            dialect: self.dialect().to_owned(),
            entry_point: agent.entry_point,
        };
        let choice = agent.session.map_or(SessionChoice::New, SessionChoice::Existing);
        let ledger = Arc::new(parent.ledger.for_session(new, choice)?);
        let env = SessionEnv {
            planning: parent.env.planning.clone(),
            roots: Arc::clone(&parent.env.roots),
            grants: parent.env.grants.for_agent(),
            asks: agent.mode.asks(),
            asking: Arc::clone(&parent.env.asking),
            presets: parent.env.presets.clone(),
            commands: Arc::clone(&parent.env.commands),
            #[cfg(feature = "web")]
            http: Arc::clone(&parent.env.http),
        };
        let history = History::new(Arc::clone(&ledger), &parent.policy.scope, Arc::clone(&parent.env.roots));
        let inner = RuntimeInner {
            registry: Arc::clone(&parent.registry),
            sources: parent.sources.clone(),
            policy: Policy { mode: agent.mode, ..parent.policy.clone() },
            env: Arc::new(env),
            asker: Arc::clone(&parent.asker),
            hooks: parent.hooks.clone(),
            host: agent.host,
            write_order: Arc::clone(&parent.write_order),
            ledger,
            history: Arc::new(history),
            calls: AtomicU64::new(0),
            warnings: Vec::new(),
            agent: Some(AgentOwner { name: agent.name, _parent: self.clone() }),
            trace: SessionTrace { parent: Mutex::new(agent.trace), is_exported: parent.trace.is_exported },
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}
