//! What the server needs from the command line: settings, rules, runtimes and runs.

use std::path::{Path, PathBuf};

use haft_ledger::{Ledger, SessionInfo};
use haft_model::PROVIDERS;
use haft_policy::Behavior;
use haft_runtime::Runtime;
use haft_server::{Backend, DecodedAttachment, NewMessage, NewRun, Provider, RuleChange, RuleChanged};
use haft_tool::{ToolError, path_from_text};

use super::super::args::{DialectArgs, RuleArgs, ScopeArgs, WorkspaceArgs};
use super::super::config::{add_to_list, remove_from_list};
use super::super::run::default_model;
use super::super::setup::Setup;
use super::super::terminal;
use super::detached_runs::{self, DetachedRun, RunProcesses};

pub(super) struct ServeBackend {
    ledger: Ledger,
    workspace: PathBuf,
    runs: RunProcesses,
}

impl ServeBackend {
    pub(super) fn new(ledger: Ledger, workspace: PathBuf) -> Self {
        Self { ledger, workspace, runs: RunProcesses::default() }
    }

    fn at(workspace: &Path) -> WorkspaceArgs {
        WorkspaceArgs { workspace: Some(workspace.to_owned()) }
    }
}

/// The behavior of a rule, and the key of its list in the settings.
fn list(change: &RuleChange) -> Result<(Behavior, String), ToolError> {
    let behavior = [Behavior::Allow, Behavior::Ask, Behavior::Deny]
        .into_iter()
        .find(|behavior| behavior.name() == change.verdict)
        .ok_or_else(|| ToolError::invalid_arguments("verdict: use allow, ask or deny."))?;
    Ok((behavior, format!("permissions.{}", behavior.name())))
}

fn changed(setup: &Setup, rule: &str) -> RuleChanged {
    let file = setup.config.path().map(|path| path.display().to_string()).unwrap_or_default();
    RuleChanged { rule: rule.to_owned(), file }
}

impl Backend for ServeBackend {
    fn runtime(&self, workspace: &Path, dialect: Option<&str>) -> Result<Runtime, ToolError> {
        let rules = RuleArgs::default();
        let setup = Setup::load_for_calls(&Self::at(workspace), &rules)?;
        let dialect = DialectArgs { dialect: dialect.map(str::to_owned), tools: None };
        let builder = setup.tool_selection(&dialect)?.into_builder(setup.builder());
        let builder = setup.rules(&rules, setup.scope(&ScopeArgs::default(), builder)?);
        builder.entry_point("serve").asker(terminal::asker(&setup)).build()
    }

    fn add_rule(&self, change: &RuleChange) -> Result<RuleChanged, ToolError> {
        let (behavior, key) = list(change)?;
        let setup = Setup::load(&Self::at(&path_from_text(&change.workspace)))?;
        let rule = change.text.trim();
        // Fails if the rule cannot be read.
        setup.builder().rule(behavior, rule, "the new rule").build()?;
        add_to_list(&setup, &key, rule)?;
        Ok(changed(&setup, rule))
    }

    fn remove_rule(&self, change: &RuleChange) -> Result<RuleChanged, ToolError> {
        let (_, key) = list(change)?;
        let setup = Setup::load(&Self::at(&path_from_text(&change.workspace)))?;
        remove_from_list(&setup, &key, change.text.trim())?;
        Ok(changed(&setup, change.text.trim()))
    }

    fn can_remove(&self, origin: &str) -> bool {
        let own = crate::config::user_file().ok().flatten().map(|path| format!("{}:", path.display()));
        own.is_some_and(|own| origin.starts_with(&own))
    }

    fn providers(&self) -> Vec<Provider> {
        let Ok(setup) = Setup::load(&Self::at(&self.workspace)) else { return Vec::new() };
        let section = &setup.config.values.model;
        let is_set = |name: &&str| std::env::var(name).is_ok_and(|value| !value.trim().is_empty());
        let providers = PROVIDERS.iter().map(|provider| {
            let is_default = section.provider.as_deref() == Some(provider.name);
            let own = section.name.clone().filter(|_| is_default);
            let has_key = !provider.needs_key || provider.key_variables.iter().any(is_set);
            Provider {
                name: provider.name.to_owned(),
                model: own.or_else(|| default_model(provider.name).map(str::to_owned)),
                is_ready: has_key,
                is_default,
            }
        });
        providers.collect()
    }

    fn start_run(&self, run: &NewRun, attachments: &[DecodedAttachment]) -> Result<String, ToolError> {
        let workspace = run.workspace.as_deref().map_or_else(|| self.workspace.clone(), path_from_text);
        let request = DetachedRun {
            workspace: &workspace,
            prompt: &run.prompt,
            provider: run.provider.as_deref(),
            model: run.model.as_deref(),
            permission_mode: run.permission_mode.as_deref(),
            attachments,
        };
        self.runs.start(&self.ledger, &request)
    }

    fn continue_run(
        &self,
        session: &SessionInfo,
        message: &NewMessage,
        attachments: &[DecodedAttachment],
    ) -> Result<(), ToolError> {
        let request = DetachedRun {
            workspace: &session.workspace,
            prompt: &message.prompt,
            provider: message.provider.as_deref(),
            model: message.model.as_deref(),
            permission_mode: None,
            attachments,
        };
        self.runs.continue_run(&self.ledger, &session.id, &request)
    }

    fn interrupt(&self, pid: u32) -> Result<(), ToolError> {
        detached_runs::interrupt(pid)
    }
}
