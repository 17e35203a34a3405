//! `haft rules explain`: the decision about a call, its reason, and what would change it.

use std::ffi::OsString;

use clap::Args;
use haft_runtime::{CallExplanation, Runtime, effect_line};
use haft_tool::{Call, ToolError, Verdict, json};

use super::super::CommandResult;
use super::super::arguments::{ArgumentTypes, TypedArguments, from_words};
use super::super::exit::CliExit;
use super::super::screen::{self, BAD, FAINT, GOOD, NAME, NOTE, escape, styled};
use super::{RulesSetup, shorthand};

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// Call as a rule writes it, such as 'Bash(git push)', or the name of a tool.
    #[arg(value_name = "CALL|TOOL")]
    call: String,
    /// Arguments of the tool, as for `haft call`.
    #[arg(value_name = "NAME=VALUE|JSON|@FILE|-")]
    arguments: Vec<OsString>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) setup: Box<RulesSetup>,
}

pub(super) fn run(runtime: &Runtime, args: &ExplainArgs) -> CommandResult {
    let explanation = runtime.explain(&call(runtime, args)?)?;
    let CallExplanation { tool, effects, decision, sufficient_rule, .. } = &explanation;
    if args.json {
        let all = json!({
            "tool": tool,
            "effects": effects,
            "verdict": decision.verdict.word(),
            "reason": decision.reason,
            "rule": decision.rule,
            "would_allow": sufficient_rule,
        });
        screen::result(&serde_json::to_string_pretty(&all)?);
        return Ok(CliExit::Done);
    }
    let style = match decision.verdict {
        Verdict::Allow => GOOD,
        Verdict::Ask => NOTE,
        Verdict::Deny => BAD,
    };
    let mut text = format!("{} {}\n", styled(style, decision.verdict.word()), styled(NAME, tool));
    text.push_str(&format!("  because {}\n", escape(&decision.reason)));
    if let Some(rule) = &decision.rule {
        text.push_str(&format!("  rule {}\n", escape(rule)));
    }
    for effect in effects {
        text.push_str(&format!("  {}\n", styled(FAINT, &escape(&effect_line(effect)))));
    }
    text.push_str(&format!("  {}\n", escape(&remedy(&explanation))));
    screen::out(&text);
    Ok(CliExit::Done)
}

/// The call that is explained.
fn call(runtime: &Runtime, args: &ExplainArgs) -> Result<Call, ToolError> {
    if args.arguments.is_empty() {
        return shorthand::parse(&args.call, runtime);
    }
    let arguments = match TypedArguments::read(args.arguments.clone())? {
        TypedArguments::Json(arguments) => arguments,
        TypedArguments::Words(words) => {
            let types = ArgumentTypes::in_runtime(&args.call, runtime);
            from_words(&words, &types.unwrap_or_else(|| ArgumentTypes::unknown(&args.call)))?
        }
    };
    Ok(Call::new("explained", &args.call, arguments))
}

/// What would change the decision.
fn remedy(explanation: &CallExplanation) -> String {
    match (explanation.decision.verdict, &explanation.decision.rule, &explanation.sufficient_rule) {
        (Verdict::Allow, _, _) => "to prevent it: haft rules add deny RULE".to_owned(),
        (_, _, Some(rule)) => format!("to allow it: haft rules add allow '{rule}'"),
        (Verdict::Deny | Verdict::Ask, Some(rule), None) => {
            format!("no allowing rule overrides that; change the rule {rule}")
        }
        (_, None, None) => "no rule can allow it in this mode".to_owned(),
    }
}
