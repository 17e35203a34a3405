//! `cargo xtask dist`: the program as it is shipped. Its bytes depend on neither the builder's directories nor its C library.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Done;
use crate::peers::NEXTEST;
use crate::peers::zig::cargo_zigbuild;
use crate::process::{on_path, read, run as run_command};
use crate::targets::{SUPPORTED, add_standard_library, host};
use crate::workspace::{Workspace, root};

/// The oldest C library that the program runs with: that of RHEL 8 and Debian 10.
const OLDEST_GLIBC: (u32, u32) = (2, 28);

/// Tests that run the program rather than the library.
const PROGRAM_TESTS: &str =
    "test(/^(cli|cli_ledger|no_witness|undo_commands|undo_tool|tasks|crash_recovery)::/)";

/// Builds for the named targets, or for this machine's. With `--run` each program is then tried out.
pub(crate) fn run(args: &[String]) -> Done {
    let host = host()?;
    let (flags, names): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| arg.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| **flag != "--run") {
        return Err(format!("dist takes --run and names of targets, not {unknown}"));
    }
    let targets = if names.is_empty() { vec![&host] } else { names };
    for target in targets {
        if !SUPPORTED.contains(&target.as_str()) {
            return Err(format!("{target} is not a supported target; these are: {}", SUPPORTED.join(", ")));
        }
        let program = build(target)?;
        if !flags.is_empty() {
            try_out(&program, target, &host)?;
        }
    }
    Ok(())
}

/// Runs the program: with the tests of the command line if it is for this machine, else with what an emulator can do.
fn try_out(program: &Path, target: &str, host: &str) -> Done {
    let architecture = |target: &str| target.split('-').next().unwrap_or_default().to_owned();
    let is_native = architecture(target) == architecture(host);
    if target.contains("linux") != host.contains("linux") {
        println!("    {target}: built, not run: this machine cannot run it");
        return Ok(());
    }
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let emulator = format!("qemu-{}-static", architecture(target));
    let haft = |args: &[&str]| {
        let mut command = if is_native { Command::new(program) } else { Command::new(&emulator) };
        if !is_native {
            command.arg(program);
        }
        command.args(args).current_dir(directory.path()).env("HAFT_HOME", directory.path().join("home"));
        run_command(&mut command)
    };
    if !is_native && on_path(&emulator).is_none() {
        println!("    {target}: built, not run: install {emulator} (Debian: qemu-user-static)");
        return Ok(());
    }
    std::fs::create_dir(directory.path().join("w")).map_err(|error| error.to_string())?;
    let file = directory.path().join("w/file");
    std::fs::write(&file, "text\n").map_err(|error| error.to_string())?;
    let input = format!("{{\"file_path\": {:?}}}", file.display().to_string());
    haft(&["--version"])?;
    haft(&["call", "Read", &input, "--workspace", "w"])?;
    if !is_native {
        println!(
            "    {target}: started; commands are not tried: {emulator} has neither Landlock nor seccomp"
        );
        return Ok(());
    }
    haft(&["doctor"])?;
    haft(&["demo"])?;
    run_command(
        Command::new(NEXTEST.find()?)
            .args(["nextest", "run", "-p", "haft-cli", "--test", "it", "-E", PROGRAM_TESTS])
            .env("HAFT_TEST_PROGRAM", program)
            .current_dir(root()),
    )
}

/// Builds the program and checks it; returns its path.
fn build(target: &str) -> Result<PathBuf, String> {
    let workspace = Workspace::load()?;
    let package = workspace.package_with("bin", "haft")?;
    add_standard_library(target)?;
    let (mut command, wanted) = if target.contains("apple") {
        let mut cargo = Command::new("cargo");
        cargo.arg("build");
        (cargo, target.to_owned())
    } else {
        let mut cargo = cargo_zigbuild()?;
        cargo.arg("zigbuild");
        let (major, minor) = OLDEST_GLIBC;
        let version = if target.ends_with("gnu") { format!(".{major}.{minor}") } else { String::new() };
        (cargo, format!("{target}{version}"))
    };
    command.args(["--profile", "dist", "--locked", "-p", package, "--target", &wanted]);
    run_command(command.env("CARGO_ENCODED_RUSTFLAGS", flags()?).current_dir(root()))?;
    let program = workspace.built(target).join("dist/haft");
    report(&program)?;
    Ok(program)
}

/// The builder's directories, and names for them that are the same everywhere.
fn builder_directories() -> Result<[(PathBuf, &'static str); 3], String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let toolchain = read(Command::new("rustc").args(["--print", "sysroot"]))?;
    Ok([(cargo, "/cargo"), (toolchain.trim().into(), "/rust"), (root().to_owned(), "/haft")])
}

/// Replaces the builder's directories in messages of panics.
fn flags() -> Result<String, String> {
    let remap = |(from, to): &(PathBuf, &str)| format!("--remap-path-prefix={}={to}", from.display());
    Ok(builder_directories()?.iter().map(remap).collect::<Vec<_>>().join("\u{1f}"))
}

/// Prints the size, and checks what the program needs from the C library and that it contains no path of the builder.
fn report(program: &Path) -> Done {
    let bytes = std::fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let versions = glibc_versions(&bytes);
    let newest = versions
        .last()
        .map_or_else(|| "no glibc".to_owned(), |(major, minor)| format!("glibc {major}.{minor}"));
    println!("{}: {} KiB, needs {newest}", program.display(), bytes.len() / 1024);
    if versions.last().is_some_and(|version| *version > OLDEST_GLIBC) {
        let (major, minor) = OLDEST_GLIBC;
        return Err(format!("it must run with glibc {major}.{minor}"));
    }
    // A linker's feature that only newer dynamic loaders have.
    if contains(&bytes, b"GLIBC_ABI_DT_RELR") {
        return Err("it has packed relocations, which need glibc 2.36".to_owned());
    }
    for (directory, _) in builder_directories()? {
        if contains(&bytes, directory.as_os_str().as_encoded_bytes()) {
            return Err(format!("it contains the builder's path {}", directory.display()));
        }
    }
    Ok(())
}

/// The versions of the C library's symbols that a program refers to.
fn glibc_versions(bytes: &[u8]) -> BTreeSet<(u32, u32)> {
    const PREFIX: &[u8] = b"GLIBC_2.";
    let found = bytes.windows(PREFIX.len()).enumerate().filter(|(_, window)| *window == PREFIX);
    let minor = |(at, _): (usize, &[u8])| {
        let digits = bytes[at + PREFIX.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        String::from_utf8(digits.copied().collect()).ok()?.parse().ok()
    };
    found.filter_map(minor).map(|minor| (2, minor)).collect()
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_version_is_found() {
        let versions = glibc_versions(b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0");
        assert_eq!(versions.into_iter().collect::<Vec<_>>(), [(2, 2), (2, 9), (2, 34)]);
    }
}
