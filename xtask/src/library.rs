//! Whether the library can be used and published: its features one by one, its dependencies, its packages.

use std::process::Command;

use crate::Done;
use crate::process::{read, run};
use crate::workspace::root;

const LIBRARY: &str = "haft";
const FEATURES: [&str; 6] = ["", "mcp", "pdf", "sandbox", "testing", "web"];
/// Crates of a TLS stack, which an author of tools must not have to compile.
const TLS_CRATES: [&str; 5] = ["reqwest", "ring", "rustls", "tokio-rustls", "aws-lc-rs"];

fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(args).current_dir(root());
    command
}

/// Each feature compiles alone, and without features there is no TLS stack.
pub(crate) fn features() -> Done {
    for feature in FEATURES {
        run(&mut cargo(&[
            "check",
            "--quiet",
            "-p",
            LIBRARY,
            "--no-default-features",
            "--features",
            feature,
        ]))?;
    }
    let tree = read(&mut cargo(&[
        "tree",
        "-p",
        LIBRARY,
        "--no-default-features",
        "-e",
        "normal",
        "--prefix",
        "none",
    ]))?;
    let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    match tree.lines().map(name).find(|name| TLS_CRATES.contains(&name.as_str())) {
        Some(name) => Err(format!("{LIBRARY} without features depends on {name}")),
        None => Ok(()),
    }
}

/// Every crate that is published has what a package needs. Nothing is compiled or uploaded.
pub(crate) fn packages() -> Done {
    let excluded = ["--exclude", "haft-fuzz", "--exclude", "xtask"];
    let package = |last: &[&str]| {
        let mut command = cargo(&["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"]);
        command.args(excluded).args(last);
        read(&mut command)
    };
    let listed = package(&["--list"])?;
    let count = |file: &str| listed.lines().filter(|line| *line == file).count();
    let packages = count("Cargo.toml.orig");
    if let Some(file) =
        ["README.md", "LICENSE-MIT", "LICENSE-APACHE"].into_iter().find(|file| count(file) < packages)
    {
        return Err(format!("{} of {packages} packages have no {file}", packages - count(file)));
    }
    package(&[]).map(drop)
}
