//! The workspace as `cargo metadata` describes it, so that no package or path is named twice.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::process;

#[derive(Deserialize)]
pub(crate) struct Workspace {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
}

/// A program, library, example or test of a package.
#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// The directory of the workspace's Cargo.toml.
///
/// `cargo run` sets the variable. The path at compile time is that of another checkout if the build directory was copied.
pub(crate) fn root() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    let package = PACKAGE.get_or_init(|| {
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).into()
    });
    package.parent().unwrap_or(package)
}

impl Workspace {
    pub(crate) fn load() -> Result<Self, String> {
        let mut command = Command::new("cargo");
        command.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(root());
        serde_json::from_str(&process::read(&mut command)?)
            .map_err(|error| format!("cargo metadata: {error}"))
    }

    /// The package that has a target of this kind (`bin`, `example`, …) and name.
    pub(crate) fn package_with(&self, kind: &str, target: &str) -> Result<&str, String> {
        let has = |package: &&Package| {
            package.targets.iter().any(|it| it.name == target && it.kind.iter().any(|it| it == kind))
        };
        let found = self.packages.iter().find(has).map(|package| package.name.as_str());
        found.ok_or_else(|| format!("no package of the workspace has the {kind} {target}"))
    }

    /// Builds the program with a profile and returns its path.
    pub(crate) fn build_haft(&self, profile: &str) -> Result<PathBuf, String> {
        let package = self.package_with("bin", "haft")?;
        process::run(
            Command::new("cargo").args(["build", "--profile", profile, "-p", package]).current_dir(root()),
        )?;
        Ok(self.built(profile).join("haft"))
    }

    /// A file below cargo's target directory.
    pub(crate) fn built(&self, path: &str) -> PathBuf {
        self.target_directory.join(path)
    }
}
