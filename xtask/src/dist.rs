//! `cargo xtask dist`: the program as it is shipped. Its bytes depend on neither the builder's directories nor its C library.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Done;
use crate::peers::zig::cargo_zigbuild;
use crate::process::{read, run as run_command};
use crate::targets::{SUPPORTED, add_standard_library, host};
use crate::workspace::{Workspace, root};

/// The oldest C library that the program runs with: that of RHEL 8 and Debian 10.
const OLDEST_GLIBC: (u32, u32) = (2, 28);

/// Builds for the named targets, or for this machine's.
pub(crate) fn run(names: &[String]) -> Done {
    let host = host()?;
    let targets = if names.is_empty() { vec![host] } else { names.to_vec() };
    for target in targets {
        if !SUPPORTED.contains(&target.as_str()) {
            return Err(format!("{target} is not a supported target; these are: {}", SUPPORTED.join(", ")));
        }
        build(&target)?;
    }
    Ok(())
}

fn build(target: &str) -> Done {
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
    report(&workspace.built(target).join("dist/haft"))
}

/// Replaces the builder's directories in messages of panics by names that are the same everywhere.
fn flags() -> Result<String, String> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let toolchain = read(Command::new("rustc").args(["--print", "sysroot"]))?;
    let prefixes = [(cargo.as_path(), "/cargo"), (Path::new(toolchain.trim()), "/rust"), (root(), "/haft")];
    let remap = |(from, to): &(&Path, &str)| format!("--remap-path-prefix={}={to}", from.display());
    Ok(prefixes.iter().map(remap).collect::<Vec<_>>().join("\u{1f}"))
}

/// Prints the size and checks what the program needs from the C library.
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
