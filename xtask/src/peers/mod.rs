//! The programs that tests and benches compare Haft with, installed once for this user.

pub(crate) mod mcp;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
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
    on_path(name).or_else(|| apt(package).then(|| on_path(name)).flatten())
}

fn apt(package: &str) -> bool {
    println!("installing {package} …");
    done(Command::new("apt-get").args(["install", "-y", "-qq", package])).is_ok()
}

/// The folder that `install` has filled, once for this user and these pins. A mark laid down last tells a whole install from one
/// that was interrupted, which is begun anew. (Not a rename at the end: a virtual environment's programs name their own place.)
/// `install` is given a lock to pass on as its programs' stdin: one that outlives us is waited for, not installed over.
fn installed(
    name: &str,
    pins: &[&str],
    install: impl FnOnce(&Path, &File) -> Result<(), String>,
) -> Result<PathBuf, String> {
    // Should Rust hash differently one day, everything is installed once more.
    let mut hasher = DefaultHasher::new();
    pins.hash(&mut hasher);
    let root = cache().join(format!("{name}-{:016x}", hasher.finish()));
    let mark = root.join("installed");
    if mark.is_file() {
        return Ok(root);
    }
    let failed = |error: std::io::Error| format!("{}: {error}", root.display());
    fs::create_dir_all(cache()).map_err(failed)?;
    let lock = File::create(root.with_extension("lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    if !mark.is_file() {
        println!("installing {} …", pins.join(" "));
        if root.exists() {
            fs::remove_dir_all(&root).map_err(failed)?;
        }
        fs::create_dir_all(&root).map_err(failed)?;
        install(&root, &lock)?;
        fs::write(&mark, pins.join("\n")).map_err(failed)?;
    }
    Ok(root)
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
    fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
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
    fs::remove_file(&packed).map_err(|error| format!("{}: {error}", packed.display()))?;
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
