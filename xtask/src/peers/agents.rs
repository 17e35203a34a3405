//! Agents of other makers, which tests lead with a scripted model.

use std::path::{Path, PathBuf};

use super::{PackageSet, mcp};

const PACKAGES: PackageSet<'_> = PackageSet {
    name: "agents",
    source: "npm",
    pins: &["@anthropic-ai/claude-code@2.1.197", "@openai/codex@0.169.0"],
};

/// The environment variables by which tests find them, after installing those that are missing.
pub(super) fn variables() -> Result<Vec<(&'static str, PathBuf)>, String> {
    let root = PACKAGES.find(|root, lock| mcp::npm(root, lock, PACKAGES.pins))?.join("node_modules");
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let short = if arch == "aarch64" { "arm64" } else { "x64" };
    let target =
        if os == "linux" { format!("{arch}-unknown-linux-musl") } else { format!("{arch}-apple-darwin") };
    let codex = Path::new("vendor").join(target).join("bin/codex");
    Ok(vec![
        ("HAFT_CLAUDE", root.join(format!("@anthropic-ai/claude-code-{}-{short}/claude", npm_os(os)))),
        ("HAFT_CODEX", root.join(format!("@openai/codex-{}-{short}", npm_os(os))).join(codex)),
    ])
}

fn npm_os(os: &str) -> &str {
    if os == "macos" { "darwin" } else { os }
}

/// What has yet to be installed.
pub(super) fn missing() -> Option<String> {
    PACKAGES.missing()
}
