//! `haft rules add` and `haft rules remove`: changes of the user's own file.

use haft_policy::Behavior;
use haft_tool::{ErrorKind, ToolError};

use super::super::CommandResult;
use super::super::config;
use super::super::setup::Setup;

pub(super) fn add(setup: &Setup, behavior: Behavior, rule: &str) -> CommandResult {
    config::add(setup, &list(behavior), &[rule.trim().to_owned()])
}

pub(super) fn remove(setup: &Setup, behavior: Behavior, rule: &str) -> CommandResult {
    let rule = rule.trim();
    config::remove(setup, &list(behavior), &[rule.to_owned()]).map_err(|error| {
        // It may be in a file that is not the user's own.
        let elsewhere =
            setup.config.rules().into_iter().find(|(of, written, _)| *of == behavior && written.text == rule);
        match elsewhere {
            Some((_, _, origin)) if error.kind == ErrorKind::TargetNotFound => {
                ToolError::new(error.kind, format!("the rule {rule} is at {origin}. Remove it there"))
            }
            _ => error,
        }
    })
}

fn list(behavior: Behavior) -> String {
    format!("permissions.{}", behavior.name())
}
