//! The host's answers to tools.

use std::time::Duration;

use haft_tool::{
    AgentReport, AgentRequest, AgentTask, Cancel, Host, HostAnswer, HostRequest, ModelRequest, ModelRole,
    Progress, ToolError, UserQuestion, Value,
};

use super::AgentHost;

/// How long an agent that was stopped may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// What tools report their todos as.
const TODOS: &str = "todos";

impl AgentHost {
    /// Ends the agents that run in the background, and waits until they have ended.
    pub fn close(&self) {
        let Ok(run) = self.attached() else { return };
        let agents = self.share.table.of(&run.session);
        for agent in &agents {
            agent.cancel.cancel();
        }
        for agent in agents {
            agent.ended.wait(STOP_TIMEOUT);
        }
    }
}

impl AgentHost {
    /// For each agent that runs in the background, what fires when it has ended.
    pub fn background(&self) -> Vec<Cancel> {
        let Ok(run) = self.attached() else { return Vec::new() };
        let agents = self.share.table.of(&run.session).into_iter();
        agents.map(|agent| agent.ended.clone()).filter(|ended| !ended.is_cancelled()).collect()
    }
}

impl Host for AgentHost {
    fn fallback(&self) -> Option<&dyn Host> {
        Some(self.share.base.as_ref())
    }

    fn ask(&self, questions: &[UserQuestion], cancel: &Cancel) -> Result<Vec<Vec<String>>, ToolError> {
        let Some(name) = &self.name else { return self.share.base.ask(questions, cancel) };
        let labelled = |question: &UserQuestion| UserQuestion {
            header: format!("{name}: {}", question.header),
            ..question.clone()
        };
        self.share.base.ask(&questions.iter().map(labelled).collect::<Vec<_>>(), cancel)
    }

    fn may_reach(&self, request: &HostRequest, cancel: &Cancel) -> Option<HostAnswer> {
        let Some(name) = &self.name else { return self.share.base.may_reach(request, cancel) };
        let command = format!("agent {name}: {}", request.command);
        self.share.base.may_reach(&HostRequest { command, ..request.clone() }, cancel)
    }

    fn agent(
        &self,
        order: &AgentRequest,
        progress: &dyn Fn(Progress),
        cancel: &Cancel,
    ) -> Result<AgentReport, ToolError> {
        self.spawn(order, progress, cancel)
    }

    fn agent_task(&self, id: &str, wait: Option<Duration>, cancel: &Cancel) -> Option<AgentTask> {
        let agent = self.share.table.find(id, &self.attached().ok()?.session)?;
        if let Some(limit) = wait {
            agent.wait(limit, cancel);
        }
        Some(agent.task())
    }

    fn stop_agent(&self, id: &str, cancel: &Cancel) -> Option<AgentTask> {
        let agent = self.share.table.find(id, &self.attached().ok()?.session)?;
        agent.cancel.cancel();
        agent.wait(STOP_TIMEOUT, cancel);
        Some(agent.task())
    }

    fn has_model(&self, role: ModelRole) -> bool {
        self.attached().is_ok_and(|run| run.model_of(role).is_some())
    }

    fn complete(&self, request: &ModelRequest, cancel: &Cancel) -> Result<String, ToolError> {
        self.attached()?.complete(request, cancel)
    }

    fn notify(&self, topic: &str, facts: &Value) {
        match self.attached() {
            Ok(run) if topic == TODOS => run.reports.set_todos(&facts["newTodos"]),
            _ => self.share.base.notify(topic, facts),
        }
    }
}
