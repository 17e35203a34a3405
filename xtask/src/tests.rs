//! `cargo xtask test`: every check there is, in the order in which they are cheap.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use crate::peers::mcp::Mcp;
use crate::peers::{DENY, NEXTEST, RIPGREP, sdk_types};
use crate::{Done, conformance, tidy};

pub(crate) fn run() -> Done {
    reachable()?;
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
    advisories(&deny)?;
    step("documentation tests", Command::new("cargo").args(["test", "--quiet", "--doc", "--workspace"]))?;
    step("example", Command::new("cargo").args(["run", "--quiet", "-p", "haft", "--example", "own_tool"]))?;
    let (rg, nextest, types, mcp) = (RIPGREP.find()?, NEXTEST.find()?, sdk_types()?, Mcp::find()?);
    step(
        "tests",
        Command::new(nextest)
            .args(["nextest", "run", "--workspace", "--no-fail-fast"])
            .args(["--status-level", "slow", "--final-status-level", "fail"])
            .env("HAFT_RG", rg)
            .env("HAFT_SDK_TYPES", types)
            .envs(mcp.variables()),
    )?;
    println!("== conformance");
    conformance::run(&[])?;
    println!("== all good");
    Ok(())
}

/// Root's tests run what was built as an ordinary user, too, who has to get there.
fn reachable() -> Done {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entered = |dir: &&Path| dir.metadata().is_ok_and(|meta| meta.mode() & 0o001 != 0);
    match root.ancestors().find(|dir| !entered(dir)) {
        Some(dir) if rustix::process::geteuid().is_root() => Err(format!(
            "tests run Haft as an ordinary user, too, who cannot enter {}; clone this project to where everybody can, such \
             as below /opt",
            dir.display()
        )),
        _ => Ok(()),
    }
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
fn advisories(deny: &Path) -> Done {
    println!("== advisories");
    let checked = Command::new(deny).args(["--log-level", "error", "check", "advisories"]).output();
    let checked = checked.map_err(|error| format!("advisories: {error}"))?;
    let said = String::from_utf8_lossy(&checked.stderr);
    if !checked.status.success() && said.contains("failed to fetch advisory database") {
        println!("   not checked: the advisory database cannot be reached from here");
        return Ok(());
    }
    if checked.status.success() { Ok(()) } else { Err(format!("advisories:\n{said}")) }
}
