//! Whether a command may run.

use std::path::{Component, Path};

use haft_tool::Effect;

use crate::command::{EffectView, ParsedCommand};
use crate::decide::{Policy, Standing, standing as standing_of_effect};
use crate::{Mode, Rule};

/// Whether a command is known to read only, and the sandbox holds it to what may be read.
pub(crate) fn only_reads(view: &EffectView<'_>, policy: &Policy) -> bool {
    policy.commands_reversible && view.command().is_some_and(|command| command.script.is_read_only())
}

pub(crate) fn standing<'a>(
    tool: &str,
    view: &EffectView<'_>,
    source: &str,
    policy: &'a Policy,
) -> Standing<'a> {
    let is_inside =
        policy.mode == Mode::BypassPermissions || (policy.mode == Mode::Scoped && policy.commands_reversible);
    match (policy.rules.allowing(tool, view), view.command()) {
        (Some(rule), Some(command)) if !is_inside && !names_all(rule, command) => {
            written_standing(tool, command, policy).unwrap_or(Standing::Ruled(rule))
        }
        (Some(rule), _) => Standing::Ruled(rule),
        (None, _) if is_inside || only_reads(view, policy) => Standing::Fine,
        (None, command) => {
            let why = command.and_then(|command| why_uncovered(tool, view, command, policy));
            let why = why.unwrap_or_default();
            let lasting =
                if policy.commands_reversible { "" } else { "what a command changes cannot be undone; " };
            Standing::Ask(format!("{lasting}it would run: {source}{why}"))
        }
    }
}

/// Whether the rule allows the command with all that it writes.
fn names_all(rule: &Rule, command: &ParsedCommand) -> bool {
    rule.command_pattern().is_none_or(|pattern| command.is_exactly(pattern))
}

/// Why the files that an allowed command writes need a question. A rule about commands does not speak of files.
fn written_standing<'a>(tool: &str, command: &ParsedCommand, policy: &'a Policy) -> Option<Standing<'a>> {
    let has_dots = |path: &str| Path::new(path).components().any(|part| part == Component::ParentDir);
    command.written_files().find_map(|path| {
        let Some(path) = path.filter(|path| !has_dots(path)) else {
            let why = "it would write a file or reach a host that is known only when the command runs";
            return Some(Standing::Ask(why.to_owned()));
        };
        // The working directory is the workspace or below it.
        let effect = Effect::Write { path: policy.scope.workspace.join(path) };
        let standing = standing_of_effect(tool, &EffectView::of(&effect), policy);
        matches!(standing, Standing::Ask(_)).then_some(standing)
    })
}

/// Which part of a command no rule covers, if that is not all of it, or what is not understood.
fn why_uncovered(
    tool: &str,
    view: &EffectView<'_>,
    command: &ParsedCommand,
    policy: &Policy,
) -> Option<String> {
    if let Some(unclear) = command.script.unclear.first() {
        let place = command.script_text(unclear.range.clone());
        return Some(format!(" ({place:?} {})", unclear.reason));
    }
    let uncovered = policy.rules.uncovered_parts(tool, view)?;
    let is_part = command.parts().count() > uncovered.len();
    is_part.then(|| format!(" (no rule allows {})", uncovered.join(", ")))
}
