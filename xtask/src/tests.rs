//! `cargo xtask test`: every check there is, in the order in which they are cheap.

use std::path::Path;
use std::process::Command;

use crate::peers::{DENY, NEXTEST, RIPGREP};
use crate::{Done, tidy};

pub(crate) fn run() -> Done {
    step("format", Command::new("cargo").args(["fmt", "--all", "--check"]))?;
    println!("== tidy");
    tidy::run()?;
    step(
        "lints",
        Command::new("cargo").args([
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]),
    )?;
    let deny = DENY.find()?;
    step(
        "licences, bans, sources",
        Command::new(&deny).args(["--log-level", "error", "check", "licenses", "bans", "sources"]),
    )?;
    advisories(&deny);
    let (rg, nextest) = (RIPGREP.find()?, NEXTEST.find()?);
    step(
        "tests",
        Command::new(nextest).args(["nextest", "run", "--workspace", "--no-fail-fast"]).env("HAFT_RG", rg),
    )?;
    step("documentation tests", Command::new("cargo").args(["test", "--quiet", "--doc", "--workspace"]))?;
    step("example", Command::new("cargo").args(["run", "--quiet", "-p", "haft", "--example", "own_tool"]))?;
    println!("== all good");
    Ok(())
}

fn step(what: &str, command: &mut Command) -> Done {
    println!("== {what}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what}: {status}")),
        Err(error) => Err(format!("{what}: {error}")),
    }
}

/// The advisory database lives on the network; a machine without it cannot check, and says so.
fn advisories(deny: &Path) {
    println!("== advisories");
    let checked = Command::new(deny).args(["--log-level", "error", "check", "advisories"]).output();
    match checked {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let why = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
            println!("   not checked or not clean: {why}");
        }
        Err(error) => println!("   not checked: {error}"),
    }
}
