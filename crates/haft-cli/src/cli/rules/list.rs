//! `haft rules list`.

use haft_policy::Behavior;
use haft_runtime::Runtime;
use haft_tool::json;

use super::super::CommandResult;
use super::super::exit::CliExit;
use super::super::screen::{self, BAD, FAINT, GOOD, NOTE, escape, styled};

pub(super) fn run(runtime: &Runtime, as_json: bool) -> CommandResult {
    let rules: Vec<_> = runtime.rules().iter().filter(|rule| !rule.is_of_dialect()).collect();
    if as_json {
        let listed: Vec<_> = rules
            .iter()
            .map(|rule| {
                json!({"behavior": rule.behavior().name(), "rule": rule.text(), "origin": rule.origin()})
            })
            .collect();
        let all = json!({"mode": runtime.mode().name(), "rules": listed, "warnings": runtime.warnings()});
        screen::result(&serde_json::to_string_pretty(&all)?);
        return Ok(CliExit::Done);
    }
    screen::out(&format!("mode {}\n", runtime.mode()));
    if rules.is_empty() {
        screen::note("There are no rules. To add one: haft rules add allow 'Bash(git log:*)'");
    }
    let mut text = String::new();
    for (behavior, style) in [(Behavior::Deny, BAD), (Behavior::Ask, NOTE), (Behavior::Allow, GOOD)] {
        for rule in rules.iter().filter(|rule| rule.behavior() == behavior) {
            let origin = styled(FAINT, &format!("# {}", escape(rule.origin())));
            text.push_str(&format!(
                "{:<5} {}  {origin}\n",
                styled(style, behavior.name()),
                escape(rule.text())
            ));
        }
    }
    screen::out(&text);
    screen::warnings(runtime.warnings());
    Ok(CliExit::Done)
}
