//! Automatic housekeeping: at most once a day, old calls, caches and outputs of detached commands are removed. What is younger
//! than a day stays, whatever the limits say.

use std::time::Duration;

use haft_ledger::{GcPolicy, Ledger};
use haft_sandbox::{CachePolicy, detached_outputs, remove_detached_output, remove_old_caches};
use haft_tool::{ToolError, now_ms};

use super::sandbox::DETACHED;
use super::screen::{self, NOTE, styled};
use crate::config::LedgerSection;

const INTERVAL: Duration = Duration::from_hours(24);
/// What is younger is never removed.
const KEEP: Duration = Duration::from_hours(24);

/// Does the housekeeping if it is due, and prints what was removed. That it fails is no reason for a command to fail.
pub(super) fn run_if_due(ledger: Result<Ledger, ToolError>, settings: &LedgerSection) {
    if let Err(error) = ledger.and_then(|ledger| try_run(&ledger, settings)) {
        screen::note(&format!("{}: housekeeping failed: {}", styled(NOTE, "note"), error.message));
    }
}

fn try_run(ledger: &Ledger, settings: &LedgerSection) -> Result<(), ToolError> {
    if !settings.housekeeping || !ledger.begin_housekeeping(INTERVAL) {
        return Ok(());
    }
    let mut removed = Vec::new();
    let report = ledger.gc(&GcPolicy {
        max_bytes: Some(settings.max_size.0),
        older_than_ms: Some(milliseconds(settings.max_age.0)),
        keep_ms: milliseconds(KEEP),
        dry_run: false,
    })?;
    if report.receipts_removed > 0 {
        let freed = screen::bytes(report.bytes_before.saturating_sub(report.bytes_after));
        removed.push(format!("{} from the ledger ({freed})", screen::count(report.receipts_removed, "call")));
    }
    let running = ledger.running_calls()?;
    if let Some(cache) = haft_runtime::cache_from_env() {
        let in_use: Vec<_> = running.iter().map(|call| call.receipt.workspace.clone()).collect();
        let policy = CachePolicy { max_bytes: settings.max_size.0, max_age: settings.max_age.0, keep: KEEP };
        let report = remove_old_caches(&cache, &policy, &in_use);
        if report.workspaces > 0 {
            let caches = screen::count(report.workspaces, "workspace");
            removed.push(format!("the caches of {caches} ({})", screen::bytes(report.bytes)));
        }
    }
    let outputs =
        remove_old_outputs(ledger, settings, &running.iter().map(|call| call.pid).collect::<Vec<_>>());
    if outputs > 0 {
        removed.push(format!("{} of detached commands", screen::count(outputs, "output")));
    }
    if !removed.is_empty() {
        screen::note(&format!(
            "{}: housekeeping removed {}; see [ledger] in haft.toml for the limits",
            styled(NOTE, "note"),
            removed.join(", ")
        ));
    }
    Ok(())
}

/// Removes outputs of detached commands that are too old, or the oldest if all take too much; returns how many.
fn remove_old_outputs(ledger: &Ledger, settings: &LedgerSection, running: &[u32]) -> u64 {
    let outputs = detached_outputs(&ledger.home().join(DETACHED));
    let mut total: u64 = outputs.iter().map(|output| output.size).sum();
    let mut removed = 0;
    for output in outputs.iter().filter(|output| !running.contains(&output.pid)) {
        let age = now_ms().saturating_sub(output.modified_at);
        let is_over = age > milliseconds(settings.max_age.0) || total > settings.max_size.0;
        if age > milliseconds(KEEP) && is_over && remove_detached_output(output).is_ok() {
            total -= output.size;
            removed += 1;
        }
    }
    removed
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
