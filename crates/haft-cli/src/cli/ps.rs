//! `haft ps`: the calls that run now, in all processes of this ledger, commands in the background included.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;
use haft_ledger::{Ledger, RunningCall};
use haft_runtime::about;
use haft_tool::{json, now_ms};

use super::CommandResult;
use super::args::WorkspaceArgs;
use super::exit::CliExit;
use super::local_time::local_time;
use super::screen::{self, FAINT, NAME, styled};
use super::view::{ViewArgs, clip_columns, terminal_size, width};

/// The columns of a line that is not for a terminal.
const PLAIN_COLUMNS: usize = 240;

#[derive(Debug, Args)]
#[command(
    after_help = "The number in the column PID is the process of Haft; ending it ends its commands.\n\n\
Examples:\n  haft ps\n  haft ps --json"
)]
pub(super) struct PsArgs {
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    view: ViewArgs,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

pub(super) fn run(args: &PsArgs) -> CommandResult {
    args.view.set_colors();
    let runtime = args.workspace.builder()?.build()?;
    runtime.recover()?;
    let ledger = runtime.ledger()?;
    let calls = ledger.running_calls()?;
    let outputs = detached_outputs(&ledger);
    if args.json {
        for call in &calls {
            let mut object = json!(call.receipt);
            object["pid"] = json!(call.pid);
            object["output"] = json!(outputs.get(&call.pid).map(|path| path.display().to_string()));
            screen::result(&object.to_string());
        }
        return Ok(CliExit::Done);
    }
    if calls.is_empty() {
        screen::note("nothing is running");
        return Ok(CliExit::Done);
    }
    let mut text = format!("{:>6}  {:>7}  {:19}  {:>8}  WHAT\n", "CALL", "PID", "SINCE", "TIME");
    for call in &calls {
        text.push_str(&line(call));
        if let Some(output) = outputs.get(&call.pid) {
            let output = screen::escape(&output.display().to_string());
            text.push_str(&format!("{:18}{}\n", "", styled(FAINT, &format!("output in {output}"))));
        }
    }
    args.view.show(&text);
    Ok(CliExit::Done)
}

fn line(call: &RunningCall) -> String {
    let receipt = &call.receipt;
    let since = now_ms().saturating_sub(receipt.started_at).saturating_mul(1_000);
    let tool = screen::escape(&receipt.tool);
    let start = format!(
        "{:>6}  {:>7}  {}  {:>8}  ",
        receipt.id,
        call.pid,
        local_time(receipt.started_at),
        screen::took(since)
    );
    let columns = terminal_size().map_or(PLAIN_COLUMNS, |(columns, _)| columns);
    let left = columns.saturating_sub(width(&start) + width(&tool) + 1);
    let about = clip_columns(&screen::escape(&about(receipt)), left.max(10)).into_owned();
    format!("{start}{} {about}\n", styled(NAME, &tool))
}

/// The files that detached commands write to, by the process that runs them.
pub(super) fn detached_outputs(ledger: &Ledger) -> HashMap<u32, PathBuf> {
    let all = haft_sandbox::detached_outputs(&ledger.home().join(super::sandbox::DETACHED));
    all.into_iter().map(|output| (output.pid, output.path)).collect()
}
