//! MCP's own programs: the conformance suite, the reference servers and the clients of other makers.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{apt, debian, done, installed};

/// The suite and the Inspector need this line; Debian's is older.
const NODE: &str = "22.23.3";

const NODE_PACKAGES: [&str; 8] = [
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/core@2.4.0",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
];

const PYTHON_PACKAGES: [&str; 3] =
    ["mcp==2.3.0", "mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19"];

/// Where MCP's programs are on this machine.
pub(crate) struct Mcp {
    pub(crate) node: PathBuf,
    modules: PathBuf,
    pub(crate) python: PathBuf,
}

impl Mcp {
    /// Finds them all, after installing what is missing.
    pub(crate) fn find() -> Result<Self, String> {
        Ok(Self { node: node()?, modules: modules()?, python: python()? })
    }

    /// How tests are told.
    pub(crate) fn variables(&self) -> [(&'static str, &Path); 3] {
        [("HAFT_NODE22", &self.node), ("HAFT_MCP_NODE", &self.modules), ("HAFT_MCP_PYTHON", &self.python)]
    }

    /// The conformance suite's script, to be run by `node`.
    pub(crate) fn suite(&self) -> PathBuf {
        self.module("@modelcontextprotocol/conformance/dist/index.js")
    }

    /// A script of one of the packages, to be run by `node`.
    pub(crate) fn module(&self, path: &str) -> PathBuf {
        self.modules.join(path)
    }
}

/// Says where they are, in words that a shell takes.
pub(crate) fn tell() -> Result<(), String> {
    for (name, path) in Mcp::find()?.variables() {
        println!("export {name}='{}'", path.display());
    }
    Ok(())
}

/// The package `node` fetches one of these from a script while it is installed; taking it directly needs no script.
fn node() -> Result<PathBuf, String> {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => {
            return Err(format!("Node {NODE} is not packaged for {other}; tests of MCP cannot run here"));
        }
    };
    let package = format!("node-{}-{arch}", std::env::consts::OS);
    let pin = format!("{package}@{NODE}");
    let program = Path::new("node_modules").join(&package).join("bin/node");
    let root = installed("node", &[&pin], |root, lock| {
        npm(root, lock, &[&pin])?;
        done(Command::new(root.join(&program)).arg("--version"))
    })?;
    Ok(root.join(program))
}

fn modules() -> Result<PathBuf, String> {
    let root = installed("mcp-node", &NODE_PACKAGES, |root, lock| npm(root, lock, &NODE_PACKAGES))?;
    Ok(root.join("node_modules"))
}

/// No package's script is run: none of these needs one, and a counterpart has no business with this machine.
fn npm(root: &Path, lock: &File, packages: &[&str]) -> Result<(), String> {
    let npm = debian("npm", "npm").ok_or("npm is needed to install MCP's programs; install it")?;
    done(
        Command::new(npm)
            .args(["install", "--prefix"])
            .arg(root)
            .args(["--save-exact", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            .args(packages)
            .stdin(held(lock)?),
    )
}

fn python() -> Result<PathBuf, String> {
    let root = installed("mcp-python", &PYTHON_PACKAGES, |root, lock| {
        let python =
            debian("python3", "python3").ok_or("python3 is needed for MCP's programs; install it")?;
        // Debian's Python lacks what a virtual environment is made with until this package is there.
        if done(Command::new(&python).args(["-c", "import ensurepip, venv"])).is_err() && !apt("python3-venv")
        {
            return Err("python3-venv is needed for MCP's programs; install it".to_owned());
        }
        done(Command::new(&python).args(["-m", "venv"]).arg(root).stdin(held(lock)?))?;
        done(
            Command::new(root.join("bin/python"))
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .args(PYTHON_PACKAGES)
                .stdin(held(lock)?),
        )
    })?;
    Ok(root.join("bin/python"))
}

fn held(lock: &File) -> Result<File, String> {
    lock.try_clone().map_err(|error| format!("the lock of an installation: {error}"))
}
