//! Agents of other makers, which tests lead with a scripted model.

use std::path::{Path, PathBuf};

use super::{PackageSet, mcp};

const PACKAGES: PackageSet<'_> = PackageSet {
    name: "agents",
    source: "npm",
    pins: &[
        "@anthropic-ai/claude-code@2.1.197",
        "@google/gemini-cli@0.61.0",
        "@openai/codex@0.169.0",
        "opencode-ai@1.18.33",
    ],
};

/// Codex's SDK, which tests let drive Haft: without the program of Codex, which it would install beside it.
const CODEX_SDK: PackageSet<'_> =
    PackageSet { name: "codex-sdk", source: "npm", pins: &["@openai/codex-sdk@0.163.0"] };

/// The environment variables by which tests find them, after installing those that are missing.
pub(super) fn variables() -> Result<Vec<(&'static str, PathBuf)>, String> {
    Ok(vec![
        ("HAFT_CLAUDE", claude()?),
        // A script for Node; the others are programs.
        ("HAFT_GEMINI", modules()?.join("@google/gemini-cli/bundle/gemini.js")),
        ("HAFT_OPENCODE", platform_package("opencode")?.join("bin/opencode")),
        ("HAFT_CODEX", codex()?),
        // The directory of the package.
        ("HAFT_CODEX_SDK", codex_sdk()?),
    ])
}

/// Claude Code, after installing it if it is missing.
pub(crate) fn claude() -> Result<PathBuf, String> {
    Ok(platform_package("@anthropic-ai/claude-code")?.join("claude"))
}

/// Codex, after installing it if it is missing.
pub(crate) fn codex() -> Result<PathBuf, String> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let target =
        if os == "linux" { format!("{arch}-unknown-linux-musl") } else { format!("{arch}-apple-darwin") };
    Ok(platform_package("@openai/codex")?.join(Path::new("vendor").join(target).join("bin/codex")))
}

fn codex_sdk() -> Result<PathBuf, String> {
    let install = [&["--omit=optional"], CODEX_SDK.pins].concat();
    let root = CODEX_SDK.find(|root, lock| mcp::npm(root, lock, &install))?;
    Ok(root.join("node_modules/@openai/codex-sdk"))
}

/// The directory of a package's programs for this machine.
fn platform_package(name: &str) -> Result<PathBuf, String> {
    let os = if std::env::consts::OS == "macos" { "darwin" } else { std::env::consts::OS };
    let arch = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
    Ok(modules()?.join(format!("{name}-{os}-{arch}")))
}

/// The directory of the packages, after installing those that are missing.
fn modules() -> Result<PathBuf, String> {
    Ok(PACKAGES.find(|root, lock| mcp::npm(root, lock, PACKAGES.pins))?.join("node_modules"))
}

/// What has yet to be installed.
pub(super) fn missing() -> impl Iterator<Item = String> {
    PACKAGES.missing().into_iter().chain(CODEX_SDK.missing())
}
