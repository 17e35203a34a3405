//! The programs that tests and benches compare Haft with, installed once for this user.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program from crates.io, pinned so that every machine compares with the same.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    package: &'static str,
    version: &'static str,
    /// Whether one that is on the PATH already is as good.
    any_version: bool,
}

pub(crate) const RIPGREP: Peer =
    Peer { name: "rg", package: "ripgrep", version: "15.2.0", any_version: false };
pub(crate) const FD: Peer = Peer { name: "fd", package: "fd-find", version: "10.5.0", any_version: false };
pub(crate) const DENY: Peer =
    Peer { name: "cargo-deny", package: "cargo-deny", version: "0.20.2", any_version: true };
pub(crate) const NEXTEST: Peer =
    Peer { name: "cargo-nextest", package: "cargo-nextest", version: "0.9.143", any_version: true };

impl Peer {
    /// Where the program is, after installing it if need be.
    pub(crate) fn find(&self) -> Result<PathBuf, String> {
        if self.any_version
            && let Some(found) = on_path(self.name)
        {
            return Ok(found);
        }
        let root = cache().join(format!("{}-{}", self.package, self.version));
        let program = root.join("bin").join(self.name);
        if program.is_file() {
            return Ok(program);
        }
        println!("installing {} {} …", self.package, self.version);
        let done = Command::new("cargo")
            .args(["install", "--quiet", "--locked", self.package, "--version", self.version, "--root"])
            .arg(&root)
            .env_remove("CARGO_TARGET_DIR")
            .status();
        match done {
            Ok(status) if status.success() => Ok(program),
            Ok(status) => Err(format!("installing {} ended with {status}", self.package)),
            Err(error) => Err(format!("cargo could not be started: {error}")),
        }
    }
}

/// A program from Debian's packages, installed if this machine lets us.
pub(crate) fn debian(name: &str, package: &str) -> Option<PathBuf> {
    on_path(name).or_else(|| {
        println!("installing {package} …");
        let done = Command::new("apt-get").args(["install", "-y", "-qq", package]).output();
        done.is_ok_and(|done| done.status.success()).then(|| on_path(name)).flatten()
    })
}

/// The types of Claude's tools as their maker published them, in the version that the source documents know. Only this one
/// file of the package is kept.
pub(crate) fn sdk_types() -> Result<PathBuf, String> {
    const PACKAGE: &str = "claude-agent-sdk";
    const VERSION: &str = "0.2.38";
    const FILE: &str = "sdk-tools.d.ts";
    let root = cache().join(format!("{PACKAGE}-{VERSION}"));
    let types = root.join(FILE);
    if types.is_file() {
        return Ok(types);
    }
    println!("fetching the types of {PACKAGE} {VERSION} …");
    let npm = debian("npm", "npm").ok_or("npm is needed to fetch the published types; install it")?;
    std::fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    let package = format!("@anthropic-ai/{PACKAGE}@{VERSION}");
    done(Command::new(npm).args(["pack", "--silent", &package, "--pack-destination"]).arg(&root))?;
    let packed = root.join(format!("anthropic-ai-{PACKAGE}-{VERSION}.tgz"));
    let member = format!("package/{FILE}");
    done(
        Command::new("tar")
            .arg("-xzf")
            .arg(&packed)
            .arg("-C")
            .arg(&root)
            .args(["--strip-components=1", &member]),
    )?;
    std::fs::remove_file(&packed).map_err(|error| format!("{}: {error}", packed.display()))?;
    Ok(types)
}

fn done(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}

fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// Outside the project, so that a clean clone does not install everything again.
fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("haft-peers")
}
