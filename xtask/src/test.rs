//! `cargo xtask test`: every check there is, the cheap ones first.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::peers::{DENY, NEXTEST};
use crate::process::{output, run as run_command};
use crate::workspace::{Workspace, root};
use crate::{Done, conformance, library, machine, peers, targets, tidy};

/// One check: what is printed, and what is done.
type Step = (&'static str, fn() -> Done);

const FULL_STEPS: &[Step] = &[
    ("this machine", machine::prepare),
    ("format", format),
    ("tidy", tidy::run),
    ("lints", lints),
    ("licences, bans, sources", licences),
    ("advisories", advisories),
    ("other targets", targets::test),
    ("documentation tests", documentation),
    ("features of the library", library::features),
    ("packages", library::packages),
    ("example", example),
    ("programs to compare with", install_peers),
    ("tests", tests),
    ("MCP conformance", || conformance::run(&[])),
];

/// What needs neither network nor other programs, for the minute between two edits.
const QUICK_STEPS: &[Step] = &[
    ("this machine", machine::prepare_quick),
    ("format", format),
    ("tidy", tidy::run),
    ("lints", lints),
    ("quick tests", quick_tests),
];

pub(crate) fn run(args: &[String]) -> Done {
    let steps = match args {
        [] => FULL_STEPS,
        [flag] if flag == "--quick" => QUICK_STEPS,
        _ => return Err(format!("test takes --quick or nothing, not {}", args.join(" "))),
    };
    let names: Vec<&str> = steps.iter().map(|(name, _)| *name).collect();
    println!("{} steps: {}", steps.len(), names.join("; "));
    let start = Instant::now();
    for (number, (name, step)) in steps.iter().enumerate() {
        println!("[{}/{}] {name}", number + 1, steps.len());
        step().map_err(|error| format!("{name}: {error}"))?;
    }
    println!("all {} steps passed in {} s", steps.len(), start.elapsed().as_secs());
    Ok(())
}

fn cargo(args: &[&str]) -> Done {
    run_command(Command::new("cargo").args(args).current_dir(root()))
}

fn format() -> Done {
    cargo(&["fmt", "--all", "--check"])
}

fn lints() -> Done {
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn documentation() -> Done {
    cargo(&["test", "--doc", "--workspace"])
}

fn example() -> Done {
    let workspace = Workspace::load()?;
    let package = workspace.package_with("example", "own_tool")?;
    cargo(&["run", "-p", package, "--example", "own_tool"])
}

fn licences() -> Done {
    deny(&DENY.find()?, &["licenses", "bans", "sources"]).map_err(|(error, _)| error)
}

/// The advisory database is on the network; where that is out of reach, the step says so and passes.
fn advisories() -> Done {
    match deny(&DENY.find()?, &["advisories"]) {
        Err((_, messages)) if messages.contains("failed to fetch advisory database") => {
            println!("    not checked: the advisory database is not reachable");
            Ok(())
        }
        checked => checked.map_err(|(error, _)| error),
    }
}

/// Runs cargo-deny; an error comes with its messages.
fn deny(program: &Path, checks: &[&str]) -> Result<(), (String, String)> {
    let mut command = Command::new(program);
    command.args(["--log-level", "error", "check"]).args(checks).current_dir(root());
    let done = output(&mut command).map_err(|error| (error, String::new()))?;
    let messages = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.success() {
        Ok(())
    } else {
        Err((format!("cargo deny: {}\n{messages}", done.status), messages))
    }
}

/// Installs what the tests compare with, so that a failure to install is not taken for a failed test.
fn install_peers() -> Done {
    peers::variables().map(drop)
}

fn tests() -> Done {
    run_command(
        Command::new(NEXTEST.find()?)
            .args(["nextest", "run", "--workspace", "--no-fail-fast"])
            .args(["--status-level", "slow", "--final-status-level", "fail"])
            .envs(peers::variables()?)
            .current_dir(root()),
    )
}

/// The profile `quick` in .config/nextest.toml says which tests these are.
fn quick_tests() -> Done {
    run_command(
        Command::new(NEXTEST.require()?)
            .args(["nextest", "run", "--workspace", "--profile", "quick"])
            .args(["--status-level", "slow", "--final-status-level", "fail"])
            .current_dir(root()),
    )
}
