//! What checks the page of `haft serve` and its API: a driver for the browser, checkers for accessibility, types and the OpenAPI
//! document. The browser itself comes from the system's packages.

use std::path::PathBuf;

use super::{PackageSet, mcp, virtual_environment};

const NODE_PACKAGES: PackageSet<'_> = PackageSet {
    name: "page",
    source: "npm",
    pins: &["axe-core@4.14.1", "playwright-core@1.65.1", "typescript@7.0.2"],
};

const OPENAPI: PackageSet<'_> =
    PackageSet { name: "openapi", source: "PyPI", pins: &["openapi-spec-validator==0.9.0"] };

/// The environment variables by which tests find them, after installing those that are missing.
pub(super) fn variables() -> Result<[(&'static str, PathBuf); 2], String> {
    let modules = NODE_PACKAGES.find(|root, lock| mcp::npm(root, lock, NODE_PACKAGES.pins))?;
    Ok([
        ("HAFT_PAGE_NODE", modules.join("node_modules")),
        ("HAFT_OPENAPI_PYTHON", virtual_environment(&OPENAPI)?.join("bin/python")),
    ])
}

/// What has yet to be installed.
pub(super) fn missing() -> impl Iterator<Item = String> {
    NODE_PACKAGES.missing().into_iter().chain(OPENAPI.missing())
}
