//! Zig as the C compiler for every target, through cargo-zigbuild; both from the Python package index.

use std::ffi::OsString;
use std::process::Command;

use super::{PackageSet, virtual_environment};

pub(super) const PACKAGES: PackageSet<'_> =
    PackageSet { name: "zig", source: "PyPI", pins: &["ziglang==0.17.0", "cargo-zigbuild==0.24.0"] };

/// A `cargo-zigbuild` command that finds its own zig.
pub(crate) fn cargo_zigbuild() -> Result<Command, String> {
    let programs = virtual_environment(&PACKAGES)?.join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(programs.clone()).chain(std::env::split_paths(&path)));
    let path: OsString = path.map_err(|error| error.to_string())?;
    let mut command = Command::new(programs.join("cargo-zigbuild"));
    command.env("PATH", path);
    Ok(command)
}
