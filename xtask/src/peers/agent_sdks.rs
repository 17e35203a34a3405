//! The Claude Agent SDKs, with which tests drive Haft.

use std::path::PathBuf;

use super::{PackageSet, mcp, virtual_environment};

/// Without the program that the package can bring along: Haft is in its place.
const NODE_PACKAGES: PackageSet<'_> = PackageSet {
    name: "agent-sdk-node",
    source: "npm",
    pins: &["@anthropic-ai/claude-agent-sdk@0.3.325", "zod@4.6.7"],
};

const PYTHON_PACKAGES: PackageSet<'_> =
    PackageSet { name: "agent-sdk-python", source: "PyPI", pins: &["claude-agent-sdk==0.2.182"] };

/// The environment variables by which tests find them, after installing those that are missing.
pub(super) fn variables() -> Result<[(&'static str, PathBuf); 2], String> {
    let modules =
        NODE_PACKAGES.find(|root, lock| mcp::npm_without_optional(root, lock, NODE_PACKAGES.pins))?;
    Ok([
        ("HAFT_AGENT_SDK_NODE", modules.join("node_modules")),
        ("HAFT_AGENT_SDK_PYTHON", virtual_environment(&PYTHON_PACKAGES)?.join("bin/python")),
    ])
}

/// What has yet to be installed.
pub(super) fn missing() -> Vec<String> {
    NODE_PACKAGES.missing().into_iter().chain(PYTHON_PACKAGES.missing()).collect()
}
