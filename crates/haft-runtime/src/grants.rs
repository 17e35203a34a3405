//! What the user allowed while the session ran: rules, and the end of plan mode.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use haft_policy::{Behavior, Mode, Policy, Rule, RuleTools};
use haft_tool::{ToolError, Value};
use serde::{Deserialize, Serialize};

/// The session's note that holds the grants, so that they hold for later calls of the session, in other processes too.
pub(crate) const NOTE: &str = "grants";

/// The grants of a session, as its note stores them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Granted {
    /// Rules that allow, with their origins.
    #[serde(default)]
    rules: Vec<(String, String)>,
    /// Whether the user approved a plan, which ends plan mode.
    #[serde(default)]
    plan_approved: bool,
    /// The mode that the user has chosen since the session began in this process.
    #[serde(skip)]
    mode: Option<Mode>,
}

/// The grants of a running session.
#[derive(Clone)]
pub(crate) struct SessionGrants {
    tools: RuleTools,
    workspace: PathBuf,
    granted: Arc<RwLock<Granted>>,
    /// Whether an approved plan ends the mode of this session.
    is_of_plan: bool,
    /// Whether the mode cannot become `bypassPermissions`.
    pub(crate) forbids_bypass: bool,
}

impl SessionGrants {
    /// The grants of a session, read from its note.
    pub(crate) fn new(
        tools: RuleTools,
        workspace: PathBuf,
        note: Option<Value>,
        forbids_bypass: bool,
    ) -> Self {
        let granted = note.and_then(|note| serde_json::from_value(note).ok()).unwrap_or_default();
        Self { tools, workspace, granted: Arc::new(RwLock::new(granted)), is_of_plan: true, forbids_bypass }
    }

    /// The same grants for a subagent, whose mode is its own.
    pub(crate) fn for_agent(&self) -> Self {
        Self { is_of_plan: false, ..self.clone() }
    }

    /// The policy with the grants.
    pub(crate) fn applied<'a>(&self, policy: &'a Policy) -> Result<Cow<'a, Policy>, ToolError> {
        let granted = self.granted.read().unwrap_or_else(PoisonError::into_inner).clone();
        if granted == Granted::default() {
            return Ok(Cow::Borrowed(policy));
        }
        let mut policy = policy.clone();
        for (rule, origin) in &granted.rules {
            policy.rules.push(self.parse(rule, origin)?);
        }
        if let Some(mode) = granted.mode.filter(|_| self.is_of_plan) {
            policy.mode = mode;
        }
        if granted.plan_approved && self.is_of_plan && policy.mode == Mode::Plan {
            policy.mode = Mode::default();
        }
        Ok(Cow::Owned(policy))
    }

    /// The policy with one more rule, to see what the rule would allow.
    pub(crate) fn with_rule(&self, policy: &Policy, rule: &str) -> Result<Policy, ToolError> {
        let mut policy = policy.clone();
        policy.rules.push(self.parse(rule, "a question")?);
        Ok(policy)
    }

    /// Adds a rule; returns the note to store.
    pub(crate) fn add_rule(&self, rule: &str, origin: &str) -> Result<Value, ToolError> {
        self.parse(rule, origin)?;
        Ok(self.change(|granted| granted.rules.push((rule.to_owned(), origin.to_owned()))))
    }

    /// Ends plan mode and allows the tools that the plan asked for; returns the note to store.
    pub(crate) fn approve_plan(&self, tools: &[String]) -> Value {
        self.change(|granted| {
            granted.plan_approved = true;
            for tool in tools {
                let rule = (tool.clone(), "the approved plan".to_owned());
                if !granted.rules.contains(&rule) {
                    granted.rules.push(rule);
                }
            }
        })
    }

    /// Changes the mode. In plan mode, a plan must be approved again.
    pub(crate) fn set_mode(&self, mode: Mode) {
        self.change(|granted| {
            granted.mode = Some(mode);
            granted.plan_approved &= mode != Mode::Plan;
        });
    }

    fn change(&self, change: impl FnOnce(&mut Granted)) -> Value {
        let mut granted = self.granted.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut granted);
        serde_json::to_value(&*granted).unwrap_or_default()
    }

    /// Parses a rule that is only compared with calls: rather too wide than too narrow.
    pub(crate) fn parse_condition(&self, rule: &str) -> Result<Rule, ToolError> {
        Rule::parse(Behavior::Ask, rule, "a condition", &self.workspace, &self.tools)
    }

    fn parse(&self, rule: &str, origin: &str) -> Result<Rule, ToolError> {
        Rule::parse(Behavior::Allow, rule, origin, &self.workspace, &self.tools)
    }
}
