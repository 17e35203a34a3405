//! What would be decided about a call, without making it.

use std::borrow::Cow;
use std::sync::Arc;

use haft_policy::{Decided, Request, Rules, decide};
use haft_tool::{Call, Decision, Effect, EffectKind, Scope, ToolError};

use crate::Runtime;
use crate::steps::ask::narrowest_rule;
use crate::steps::decode;
use crate::steps::perform::catch_panic;

/// What would be decided about a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallExplanation {
    /// The name of the tool.
    pub tool: String,
    /// What the call would touch, with the paths that links lead to.
    pub effects: Vec<Effect>,
    /// The decision and the rule behind it.
    pub decision: Decision,
    /// The narrowest rule that would allow it without a question, if it is asked about or denied and one can.
    pub sufficient_rule: Option<String>,
}

impl Runtime {
    /// Plans a call and decides about it. Makes no call and connects no server.
    pub fn explain(&self, call: &Call) -> Result<CallExplanation, ToolError> {
        let entry = self.inner.find(&call.tool)?;
        let decoded = entry.check(decode::parse(call.arguments.clone())?)?;
        let plan = || Arc::clone(&entry.tool).plan(decoded.arguments, &self.inner.env.planning);
        let effects = self.inner.with_resolved_paths(&catch_panic(plan)?.effects);
        let mut policy = self.inner.env.grants.applied(&self.inner.policy)?;
        if let Some(reads) = &entry.reads {
            let scope = Arc::new(Scope { reads: reads.clone(), ..(*policy.scope).clone() });
            policy = Cow::Owned(haft_policy::Policy { scope, ..policy.into_owned() });
        }
        let tool = entry.tool.name().to_owned();
        let (decision, sufficient_rule) = match decide(Request { tool: &tool, effects: &effects }, &policy) {
            Decided::Allow(_, decision) => (decision, None),
            Decided::Ask(_, decision) | Decided::Deny(decision) => {
                (decision, narrowest_rule(&tool, &effects, &policy, &self.inner.env.grants))
            }
        };
        Ok(CallExplanation { tool, effects, decision, sufficient_rule })
    }

    /// Whether a rule may be meant to apply to a call: also if the call cannot be planned or the rule cannot be parsed.
    pub fn may_match_rule(&self, call: &Call, rule: &str) -> bool {
        let Ok(effects) = self.planned_effects(call) else { return true };
        let Ok(rule) = self.inner.env.grants.parse_condition(rule) else { return true };
        rule.speaks_of(&call.tool, &effects)
    }

    /// The kinds of effects that a tool may have; none if it is not known.
    pub fn declared_effects(&self, tool: &str) -> Vec<EffectKind> {
        self.inner.find(tool).map(|entry| entry.tool.effects().to_vec()).unwrap_or_default()
    }

    /// The arguments of a tool whose text stands for something else on the command line, such as a path, with what it stands for.
    pub fn argument_formats(&self, tool: &str) -> Vec<(String, String)> {
        self.inner.find(tool).map(|entry| entry.tool.argument_formats()).unwrap_or_default()
    }

    /// The name of the subagent that makes the calls, if it is one.
    pub fn agent_name(&self) -> Option<&str> {
        self.inner.agent.as_ref().map(|agent| agent.name.as_str())
    }

    /// The rules in force, in the order in which they were added.
    pub fn rules(&self) -> &Rules {
        &self.inner.policy.rules
    }
}
