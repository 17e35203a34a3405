//! MCP's own programs: the conformance suite, the reference servers and other vendors' clients.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{PackageSet, shared, virtual_environment};
use crate::process::read;

/// The suite and the Inspector need this version; Debian's is older.
const NODE_VERSION: &str = "22.23.3";

const NODE_PACKAGES: PackageSet<'_> = PackageSet {
    name: "mcp-node",
    source: "npm",
    pins: &[
        "@modelcontextprotocol/client@2.4.0",
        "@modelcontextprotocol/conformance@0.2.0-alpha.12",
        "@modelcontextprotocol/core@2.4.0",
        "@modelcontextprotocol/inspector@2.12.0",
        "@modelcontextprotocol/sdk@1.32.2",
        "@modelcontextprotocol/server-everything@2026.8.31",
        "@modelcontextprotocol/server-filesystem@2026.8.31",
        "@modelcontextprotocol/server-memory@2026.8.31",
    ],
};

const PYTHON_PACKAGES: PackageSet<'_> = PackageSet {
    name: "mcp-python",
    source: "PyPI",
    pins: &["mcp==2.3.0", "mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19"],
};

/// The paths of MCP's programs on this machine.
pub(crate) struct McpPeers {
    pub(crate) node: PathBuf,
    modules: PathBuf,
    pub(crate) python: PathBuf,
}

impl McpPeers {
    /// Finds them all, after installing those that are missing.
    pub(crate) fn find() -> Result<Self, String> {
        let modules = NODE_PACKAGES.find(|root, lock| npm(root, lock, NODE_PACKAGES.pins))?;
        Ok(Self {
            node: node()?,
            modules: modules.join("node_modules"),
            python: virtual_environment(&PYTHON_PACKAGES)?.join("bin/python"),
        })
    }

    /// The environment variables by which tests find them.
    pub(super) fn variables(self) -> Vec<(&'static str, PathBuf)> {
        vec![("HAFT_NODE22", self.node), ("HAFT_MCP_NODE", self.modules), ("HAFT_MCP_PYTHON", self.python)]
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

/// What has yet to be installed.
pub(super) fn missing() -> Vec<String> {
    let node = node_package().ok().and_then(|package| {
        let pin = format!("{package}@{NODE_VERSION}");
        PackageSet { name: "node", source: "npm", pins: &[&pin] }.missing()
    });
    node.into_iter().chain(NODE_PACKAGES.missing()).chain(PYTHON_PACKAGES.missing()).collect()
}

/// The package `node` fetches one of these from a script while it is installed; using it directly needs no script.
fn node_package() -> Result<String, String> {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => {
            return Err(format!(
                "Node {NODE_VERSION} is not packaged for {other}; tests of MCP cannot run here"
            ));
        }
    };
    Ok(format!("node-{}-{arch}", std::env::consts::OS))
}

fn node() -> Result<PathBuf, String> {
    let package = node_package()?;
    let pin = format!("{package}@{NODE_VERSION}");
    let program = Path::new("node_modules").join(&package).join("bin/node");
    let root = PackageSet { name: "node", source: "npm", pins: &[&pin] }.find(|root, lock| {
        npm(root, lock, &[&pin])?;
        read(Command::new(root.join(&program)).arg("--version")).map(drop)
    })?;
    Ok(root.join(program))
}

/// Installs without running the packages' scripts: none of these packages needs one.
pub(super) fn npm(root: &Path, lock: &File, packages: &[&str]) -> Result<(), String> {
    install(root, lock, packages, &[])
}

/// The same without what the packages can do without.
pub(super) fn npm_without_optional(root: &Path, lock: &File, packages: &[&str]) -> Result<(), String> {
    install(root, lock, packages, &["--omit=optional"])
}

fn install(root: &Path, lock: &File, packages: &[&str], flags: &[&str]) -> Result<(), String> {
    read(
        Command::new("npm")
            .args(["install", "--prefix"])
            .arg(root)
            .args(["--save-exact", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            .args(flags)
            .args(packages)
            .stdin(shared(lock)?),
    )
    .map(drop)
}
