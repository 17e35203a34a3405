//! `haft rules test`: decisions that are expected of the rules.

use std::path::PathBuf;

use clap::Args;
use haft_files::{read_bounded, read_named};
use haft_runtime::Runtime;
use haft_tool::{Call, ToolError};

use super::super::CommandResult;
use super::super::exit::CliExit;
use super::super::screen::{self, BAD, GOOD, escape, styled};
use super::{RulesSetup, shorthand};

/// Largest file of cases.
const MAX_CASES_BYTES: u64 = 16 << 20;

#[derive(Debug, Args)]
pub(super) struct RuleTestArgs {
    /// File of cases; standard input by default. Empty lines and lines that begin with # are skipped.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) setup: Box<RulesSetup>,
}

pub(super) fn run(runtime: &Runtime, args: &RuleTestArgs) -> CommandResult {
    let (mut passed, mut failed) = (0_u64, 0_u64);
    for (number, line) in (1..).zip(cases(args)?.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (expected, call) = case(line, runtime)
            .map_err(|error| ToolError::new(error.kind, format!("line {number}: {}", error.message)))?;
        let decision = runtime.explain(&call)?.decision;
        let found = decision.verdict.word();
        if found == expected {
            passed += 1;
            continue;
        }
        failed += 1;
        let rule = decision.rule.map(|rule| format!(" [{rule}]")).unwrap_or_default();
        let why = escape(&format!("{}{rule}", decision.reason));
        screen::out(&format!("line {number}: {}: {}, because {why}\n", escape(line), styled(BAD, found)));
    }
    let summary = format!("{passed} passed, {failed} failed");
    screen::note(&styled(if failed == 0 { GOOD } else { BAD }, &summary));
    Ok(if failed == 0 { CliExit::Done } else { CliExit::Failed })
}

fn cases(args: &RuleTestArgs) -> Result<String, ToolError> {
    let bytes = match &args.file {
        Some(file) => read_named(file, MAX_CASES_BYTES)?,
        None => read_bounded(std::io::stdin().lock(), MAX_CASES_BYTES)
            .map_err(|error| ToolError::io("read standard input", &error))?
            .ok_or_else(|| {
                ToolError::invalid_arguments(format!("the cases have more than {MAX_CASES_BYTES} bytes"))
            })?,
    };
    String::from_utf8(bytes).map_err(|_| ToolError::invalid_arguments("the cases are not UTF-8"))
}

/// A line: the expected verdict and the call.
fn case<'l>(line: &'l str, runtime: &Runtime) -> Result<(&'l str, Call), ToolError> {
    let (expected, call) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if !["allow", "ask", "deny"].contains(&expected) || call.trim().is_empty() {
        let why = format!("{line:?} is no case. Write allow, ask or deny, and a call: deny Bash(git push)");
        return Err(ToolError::invalid_arguments(why));
    }
    Ok((expected, shorthand::parse(call, runtime)?))
}
