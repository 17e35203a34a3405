//! The programs that tests and benches compare Haft with, pinned and installed once for this user.

mod agent_sdks;
mod agents;
pub(crate) mod mcp;
mod page;
pub(crate) mod zig;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{on_path, read, run};
pub(crate) use agents::{claude, codex};

/// A program from crates.io.
pub(crate) struct CratePeer {
    name: &'static str,
    package: &'static str,
    version: &'static str,
    /// Whether any version on the PATH will do.
    any_version: bool,
}

pub(crate) const RIPGREP: CratePeer =
    CratePeer { name: "rg", package: "ripgrep", version: "15.2.0", any_version: false };
pub(crate) const FD: CratePeer =
    CratePeer { name: "fd", package: "fd-find", version: "10.5.0", any_version: false };
pub(crate) const DENY: CratePeer =
    CratePeer { name: "cargo-deny", package: "cargo-deny", version: "0.20.2", any_version: true };
pub(crate) const NEXTEST: CratePeer =
    CratePeer { name: "cargo-nextest", package: "cargo-nextest", version: "0.9.143", any_version: true };

impl CratePeer {
    /// The program's path, after installing it if it is missing.
    pub(crate) fn find(&self) -> Result<PathBuf, String> {
        if let Some(found) = self.installed() {
            return Ok(found);
        }
        eprintln!("installing {} …", self.describe());
        run(Command::new("cargo")
            .args(["install", "--locked", self.package, "--version", self.version, "--root"])
            .arg(self.root())
            .env_remove("CARGO_TARGET_DIR"))?;
        self.installed().ok_or_else(|| format!("{} has no program {}", self.package, self.name))
    }

    /// The program's path; if it is missing, an error that says how to install it.
    pub(crate) fn require(&self) -> Result<PathBuf, String> {
        let command = format!("cargo install --locked {} --version {}", self.package, self.version);
        self.installed().ok_or_else(|| format!("{} is missing; install it: {command}", self.name))
    }

    fn installed(&self) -> Option<PathBuf> {
        let pinned = self.root().join("bin").join(self.name);
        let found = if self.any_version { on_path(self.name) } else { None };
        found.or_else(|| pinned.is_file().then_some(pinned))
    }

    fn root(&self) -> PathBuf {
        cache().join(format!("{}-{}", self.package, self.version))
    }

    fn describe(&self) -> String {
        format!("{} {} from crates.io", self.package, self.version)
    }
}

/// Pinned packages of one package manager, installed into a directory of their own.
pub(crate) struct PackageSet<'a> {
    pub(crate) name: &'a str,
    pub(crate) source: &'a str,
    pub(crate) pins: &'a [&'a str],
}

impl PackageSet<'_> {
    /// The directory that `install` fills, once for this user and these pins.
    ///
    /// `install` passes the lock on to its programs as their stdin, so that another run waits for an installation that
    /// outlives its xtask. A file written last marks a complete installation; an incomplete one is removed and repeated.
    /// (Renaming at the end would not do: the programs of a virtual environment contain their own path.)
    fn find(&self, install: impl FnOnce(&Path, &File) -> Result<(), String>) -> Result<PathBuf, String> {
        let root = self.root();
        let complete = root.join("installed");
        if complete.is_file() {
            return Ok(root);
        }
        let failed = |error: std::io::Error| format!("{}: {error}", root.display());
        fs::create_dir_all(cache()).map_err(failed)?;
        let lock = File::create(root.with_extension("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        if !complete.is_file() {
            eprintln!("installing {} …", self.describe());
            if root.exists() {
                fs::remove_dir_all(&root).map_err(failed)?;
            }
            fs::create_dir_all(&root).map_err(failed)?;
            install(&root, &lock)?;
            fs::write(&complete, self.pins.join("\n")).map_err(failed)?;
        }
        Ok(root)
    }

    fn missing(&self) -> Option<String> {
        (!self.root().join("installed").is_file()).then(|| self.describe())
    }

    fn root(&self) -> PathBuf {
        // If a later Rust hashes differently, everything is installed once more.
        let mut hasher = DefaultHasher::new();
        self.pins.hash(&mut hasher);
        cache().join(format!("{}-{:016x}", self.name, hasher.finish()))
    }

    fn describe(&self) -> String {
        format!("{} from {}", self.pins.join(" "), self.source)
    }
}

/// The environment variables by which the tests find their peers, after installing those that are missing.
pub(crate) fn variables() -> Result<Vec<(&'static str, PathBuf)>, String> {
    let mut variables = mcp::McpPeers::find()?.variables();
    variables.extend(agents::variables()?);
    variables.extend(agent_sdks::variables()?);
    variables.extend(page::variables()?);
    variables.extend([
        ("HAFT_RG", RIPGREP.find()?),
        ("HAFT_OTEL_PYTHON", virtual_environment(&OTEL_PROTO)?.join("bin/python")),
        ("HAFT_SDK_TYPES", sdk_types()?),
        ("HAFT_SDK_PYTHON", virtual_environment(&VENDOR_SDKS)?.join("bin/python")),
    ]);
    Ok(variables)
}

/// Prints the variables for a shell to evaluate.
pub(crate) fn print_variables() -> Result<(), String> {
    for (name, path) in variables()? {
        println!("export {name}='{}'", path.display());
    }
    Ok(())
}

/// What a test run will install, in words.
pub(crate) fn missing() -> Vec<String> {
    let crates = [NEXTEST, DENY, RIPGREP];
    let mut missing: Vec<String> =
        crates.iter().filter(|peer| peer.installed().is_none()).map(CratePeer::describe).collect();
    missing.extend(mcp::missing());
    missing.extend(agents::missing());
    missing.extend(agent_sdks::missing());
    missing.extend(page::missing());
    missing.extend(zig::PACKAGES.missing());
    missing.extend(VENDOR_SDKS.missing());
    missing.extend(OTEL_PROTO.missing());
    missing.extend((!sdk_types_path().is_file()).then(|| format!("{SDK} {SDK_VERSION} from npm")));
    missing
}

/// The SDKs of the providers of models, whose types the bodies of requests are checked against.
const VENDOR_SDKS: PackageSet<'_> = PackageSet {
    name: "vendor-sdks",
    source: "PyPI",
    pins: &[
        "openai==3.51.0",
        "anthropic==2.10.0",
        "google-genai==3.3.0",
        "ollama==0.6.3",
        "openrouter==1.3.84",
    ],
};

/// The published messages of OpenTelemetry's protocol, with which tests read what Haft sends.
const OTEL_PROTO: PackageSet<'_> =
    PackageSet { name: "otel-proto", source: "PyPI", pins: &["opentelemetry-proto==1.45.2"] };

const SDK: &str = "claude-agent-sdk";
const SDK_VERSION: &str = "0.2.38";
const SDK_FILE: &str = "sdk-tools.d.ts";

/// The published types of Claude's tools, in the version that the source documents describe. Only this one file of the package
/// is kept.
fn sdk_types() -> Result<PathBuf, String> {
    let types = sdk_types_path();
    if types.is_file() {
        return Ok(types);
    }
    eprintln!("installing {SDK} {SDK_VERSION} from npm …");
    let root = cache().join(format!("{SDK}-{SDK_VERSION}"));
    fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    let package = format!("@anthropic-ai/{SDK}@{SDK_VERSION}");
    read(Command::new("npm").args(["pack", "--silent", &package, "--pack-destination"]).arg(&root))?;
    let packed = root.join(format!("anthropic-ai-{SDK}-{SDK_VERSION}.tgz"));
    read(
        Command::new("tar")
            .arg("-xzf")
            .arg(&packed)
            .arg("-C")
            .arg(&root)
            .args(["--strip-components=1", &format!("package/{SDK_FILE}")]),
    )?;
    fs::remove_file(&packed).map_err(|error| format!("{}: {error}", packed.display()))?;
    Ok(types)
}

fn sdk_types_path() -> PathBuf {
    cache().join(format!("{SDK}-{SDK_VERSION}")).join(SDK_FILE)
}

/// A virtual environment with pinned Python packages.
fn virtual_environment(packages: &PackageSet<'_>) -> Result<PathBuf, String> {
    packages.find(|root, lock| {
        read(Command::new("python3").args(["-m", "venv"]).arg(root).stdin(shared(lock)?))?;
        read(
            Command::new(root.join("bin/python"))
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(packages.pins)
                .stdin(shared(lock)?),
        )?;
        Ok(())
    })
}

fn shared(lock: &File) -> Result<File, String> {
    lock.try_clone().map_err(|error| format!("the lock of an installation: {error}"))
}

/// Outside the project, so that a clean clone does not install everything again.
pub(crate) fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("haft-peers")
}
