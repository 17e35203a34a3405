//! Where MCP's own programs are: the clients and servers of other makers.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod stage;
pub(crate) mod visitor;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The Node that runs them.
pub(crate) fn node() -> PathBuf {
    PathBuf::from(given("HAFT_NODE22"))
}

/// The folder of Node's packages.
pub(crate) fn modules() -> PathBuf {
    PathBuf::from(given("HAFT_MCP_NODE"))
}

/// The Python that has the SDK.
pub(crate) fn python() -> PathBuf {
    PathBuf::from(given("HAFT_MCP_PYTHON"))
}

/// A program that was installed beside that Python.
pub(crate) fn beside_python(name: &str) -> String {
    python().with_file_name(name).to_str().unwrap().to_owned()
}

/// The script that an npm package of MCP's makers starts with.
pub(crate) fn script(package: &str, path: &str) -> String {
    let script = modules().join("@modelcontextprotocol").join(package).join(path);
    script.to_str().unwrap().to_owned()
}

/// A file of this project's tests.
pub(crate) fn ours(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).to_str().unwrap().to_owned()
}

fn given(name: &str) -> OsString {
    let given = std::env::var_os(name);
    assert!(
        given.is_some(),
        "this test needs MCP programs of other makers, and {name} does not say where they are: run it by `cargo xtask test`, or \
         `eval \"$(cargo xtask peers)\"` first; both install what is missing"
    );
    given.unwrap_or_default()
}
