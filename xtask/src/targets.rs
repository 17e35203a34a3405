//! `cargo xtask targets`: whether the workspace compiles for every supported target.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::Done;
use crate::peers::zig::cargo_zigbuild;
use crate::process::{on_path, output, read};
use crate::workspace::Workspace;

pub(crate) const SUPPORTED: [&str; 6] = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
];

/// The outcome for one target.
enum Verdict {
    Compiles,
    Fails(String),
    /// Something that the check needs is missing.
    Unchecked(String),
}

/// Checks the named targets, or all supported ones.
pub(crate) fn run(names: &[String]) -> Done {
    if let Some(unknown) = names.iter().find(|name| !SUPPORTED.contains(&name.as_str())) {
        return Err(format!("{unknown} is not a supported target; these are: {}", SUPPORTED.join(", ")));
    }
    let wanted =
        SUPPORTED.into_iter().filter(|target| names.is_empty() || names.iter().any(|name| name == target));
    check(wanted)
}

/// Checks every target but the host's; the lints have already compiled the host's.
pub(crate) fn test() -> Done {
    let host = host()?;
    check(SUPPORTED.into_iter().filter(|target| *target != host))
}

fn check<'a>(targets: impl Iterator<Item = &'a str>) -> Done {
    let (host, workspace) = (host()?, Workspace::load()?);
    let (mut failed, mut unchecked) = (Vec::new(), Vec::new());
    for target in targets {
        println!("    {target} …");
        match verdict(target, &host, &workspace) {
            Verdict::Compiles => println!("    {target}: compiles"),
            Verdict::Fails(why) => {
                println!("    {target}: FAILS: {why}");
                failed.push(target);
            }
            Verdict::Unchecked(why) => {
                println!("    {target}: not checked: {why}");
                unchecked.push(target);
            }
        }
    }
    if !failed.is_empty() {
        return Err(format!("does not compile for {}", failed.join(", ")));
    }
    // A machine of a developer may lack rustup or a network; CI must not pass without the check.
    if !unchecked.is_empty() && std::env::var_os("CI").is_some() {
        return Err(format!("not checked for {}", unchecked.join(", ")));
    }
    Ok(())
}

fn verdict(target: &str, host: &str, workspace: &Workspace) -> Verdict {
    if let Err(why) = add_standard_library(target) {
        return Verdict::Unchecked(why);
    }
    // The host's own compiler does for the host, and on macOS for both architectures.
    let native = target == host || target.contains("apple") && host.contains("apple");
    let mut command = match if native { Ok(Command::new("cargo")) } else { cargo_zigbuild() } {
        Ok(command) => command,
        Err(why) => return Verdict::Unchecked(why),
    };
    command.args(["check", "--workspace", "--keep-going", "--color=never", "--target", target]);
    match output(&mut command) {
        Ok(done) if done.status.success() => Verdict::Compiles,
        Ok(done) => Verdict::Fails(summary(target, &String::from_utf8_lossy(&done.stderr), workspace)),
        Err(why) => Verdict::Unchecked(why),
    }
}

pub(crate) fn add_standard_library(target: &str) -> Done {
    if on_path("rustup").is_none() {
        return Err("rustup is missing, so the target's standard library cannot be installed".to_owned());
    }
    let installed = read(Command::new("rustup").args(["target", "list", "--installed"]))?;
    if !installed.lines().any(|line| line == target) {
        println!("    installing the standard library: rustup target add {target}");
        read(Command::new("rustup").args(["target", "add", target]))?;
    }
    Ok(())
}

/// How many errors there are, in which files, and where all of the output is.
fn summary(target: &str, messages: &str, workspace: &Workspace) -> String {
    let errors =
        messages.lines().filter(|line| line.starts_with("error[") || line.starts_with("error: ")).count();
    let places = messages.lines().filter_map(|line| line.trim_start().strip_prefix("--> "));
    let files: BTreeSet<&str> = places.filter_map(|place| place.split(':').next()).collect();
    let shown = files.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    let log = workspace.built(&format!("targets/{target}.log"));
    let written = fs::create_dir_all(workspace.built("targets")).and_then(|()| fs::write(&log, messages));
    let place = written.map_or_else(|error| error.to_string(), |()| log.display().to_string());
    format!("{errors} errors in {} files ({shown} …); all of them: {place}", files.len())
}

pub(crate) fn host() -> Result<String, String> {
    let version = read(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not name its host".to_owned())
}
