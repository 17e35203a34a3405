//! `haft gc`: shrinks the ledger.

use haft_ledger::{GcPolicy, Ledger};

use super::exit::CliExit;
use super::screen;
use super::{CommandResult, args};

pub(super) fn run(args: &args::GcArgs) -> CommandResult {
    let ledger = Ledger::open(Ledger::home_from_env()?)?;
    let report = ledger.gc(&GcPolicy {
        max_bytes: Some(args.max_size),
        older_than_ms: args.older_than,
        dry_run: args.dry_run,
        ..GcPolicy::default()
    })?;
    let verb = if args.dry_run { "Would delete" } else { "Deleted" };
    screen::out(&format!(
        "{verb} {} and {}. The ledger uses {} (before: {}).\n",
        screen::count(report.receipts_removed, "call"),
        screen::count(report.blobs_removed, "previous file content"),
        screen::bytes(report.bytes_after),
        screen::bytes(report.bytes_before),
    ));
    Ok(CliExit::Done)
}

/// Reads a size such as `500M`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let invalid = || format!("{text:?} is not a size. Examples: 500M, 2G");
    let (number, unit) = split(text);
    let factor: u64 = match unit.to_ascii_uppercase().trim_end_matches("IB").trim_end_matches('B') {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return Err(invalid()),
    };
    let number: u64 = number.parse().map_err(|_| invalid())?;
    number.checked_mul(factor).ok_or_else(|| format!("{text:?} is too large"))
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_or_refused() {
        assert_eq!(size("500M"), Ok(500 << 20));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("7"), Ok(7));
        assert!(
            size("x").is_err() && size("5X").is_err() && size("99999999999T").is_err() && size("-1").is_err()
        );
    }
}
