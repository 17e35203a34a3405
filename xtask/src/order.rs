//! `crates/haft-cli/order.txt`: which of the program's functions run at all, so that the linker puts them beside each other.
//!
//! The kernel maps a program by sixteen pages at a time. Scattered over its whole length, the tenth of Haft that runs in a
//! usual session would bring most of the rest along, in memory and in time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Done;

/// What stands at the head of the file.
const HEAD: &str = "\
# The functions that run in a usual session, the most usual first, by the names that the linker knows. Written by
# `cargo xtask order`. A name that no longer exists does no harm; it only leaves its successor where it happens to be.
";

/// Parts of `haft-world` that no tracer can follow: it does not know the calls that hold a command to its scope.
const HELD: [&str; 6] = ["process", "sandbox", "witness", "enclosure", "tasks", "journal"];

/// What is tried, one run each. `HERE` is the workspace.
const RUNS: &[&[&str]] = &[
    &["--version"],
    &["tools"],
    &["call", "Write", r#"{"file_path":"HERE/a.txt","content":"hello\nworld\n"}"#],
    &["call", "Read", r#"{"file_path":"HERE/a.txt"}"#],
    &["call", "Edit", r#"{"file_path":"HERE/a.txt","old_string":"world","new_string":"there"}"#],
    &["call", "Grep", r#"{"pattern":"hello","output_mode":"content"}"#],
    &["call", "Glob", r#"{"pattern":"*.txt"}"#],
    &["call", "Bash", r#"{"command":"true"}"#],
    &["sandbox", "--", "true"],
    &["sandbox", "--sandbox", "off", "--", "true"],
    &["log"],
    &["show", "1"],
    &["undo", "--yes"],
    &["doctor"],
    &["mcp"],
];

/// What a client says to `haft mcp`.
const TALK: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"order","version":"0"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/list"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"HERE/a.txt"}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"Grep","arguments":{"pattern":"hello"}}}
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"Edit","arguments":{"file_path":"HERE/a.txt","old_string":"h","new_string":"H"}}}
"#;

pub(crate) fn run() -> Done {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no root")?;
    let built = Command::new("cargo").args(["build", "--quiet", "--release", "-p", "haft-cli"]).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("haft does not build".to_owned());
    }
    let haft = root.join("target/release/haft");
    let there = functions(&haft)?;
    // The runs that each function is part of, a bit for each.
    let mut runs: BTreeMap<&str, u32> = BTreeMap::new();
    let stage = tempfile::tempdir().map_err(|error| error.to_string())?;
    for (at, arguments) in RUNS.iter().enumerate() {
        println!("haft {}", arguments.join(" "));
        let ran = trace(&haft, arguments, stage.path())?;
        for name in ran.iter().filter_map(|name| there.get(name)) {
            *runs.entry(name).or_default() |= 1 << at;
        }
    }
    if runs.len() < 100 {
        return Err(format!("only {} functions have run; is the program stripped?", runs.len()));
    }
    let mut usual: Vec<(&str, u32)> = runs.iter().map(|(name, part_of)| (*name, *part_of)).collect();
    // What runs together stands together.
    usual.sort_by_key(|(name, part_of)| (std::cmp::Reverse(part_of.count_ones()), *part_of, *name));
    let held = there.iter().filter(|name| !runs.contains_key(name.as_str()) && is_held(name));
    let names: Vec<&str> = usual.iter().map(|(name, _)| *name).chain(held.map(String::as_str)).collect();
    let path = root.join("crates/haft-cli/order.txt");
    fs::write(&path, format!("{HEAD}{}\n", names.join("\n"))).map_err(|error| error.to_string())?;
    println!("{} of {} functions: {}", names.len(), there.len(), path.display());
    Ok(())
}

fn is_held(name: &str) -> bool {
    HELD.iter().any(|part| name.contains(&format!("10haft_world{}{part}", part.len())))
}

/// The names of all functions of a program.
fn functions(program: &Path) -> Result<BTreeSet<String>, String> {
    let said = Command::new("nm").arg("--defined-only").arg(program).output();
    let said = said.map_err(|error| format!("nm, of binutils, is needed: {error}"))?;
    let lines = String::from_utf8_lossy(&said.stdout);
    let function = |line: &str| {
        let mut words = line.split(' ').skip(1);
        matches!(words.next(), Some("t" | "T")).then(|| words.next().map(str::to_owned)).flatten()
    };
    Ok(lines.lines().filter_map(function).collect())
}

/// Runs the program once and gives the names of the functions that ran.
fn trace(haft: &Path, arguments: &[&str], stage: &Path) -> Result<BTreeSet<String>, String> {
    let told = |error: std::io::Error| error.to_string();
    let (traces, workspace) = (stage.join("traces"), stage.join("workspace"));
    let _ = fs::remove_dir_all(&traces);
    fs::create_dir_all(&traces).map_err(told)?;
    fs::create_dir_all(&workspace).map_err(told)?;
    let filled = |text: &str| text.replace("HERE", &workspace.display().to_string());
    let mut tracer = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", "--demangle=no"])
        .arg(format!("--callgrind-out-file={}/%p", traces.display()))
        .arg(haft)
        .args(arguments.iter().map(|argument| filled(argument)))
        .current_dir(&workspace)
        .env("HAFT_HOME", stage.join("home"))
        .env("HAFT_CONFIG", stage.join("none.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("valgrind is needed: {error}"))?;
    if let Some(mut input) = tracer.stdin.take() {
        // Who does not listen has ended.
        let _ = input.write_all(filled(TALK).as_bytes());
    }
    // Some of it fails, because the tracer does not know every call; what ran until then counts.
    tracer.wait().map_err(told)?;
    let mut ran = BTreeSet::new();
    for entry in fs::read_dir(&traces).map_err(told)?.flatten() {
        let trace = fs::read_to_string(entry.path()).map_err(told)?;
        // `fn=(12) name` where a function comes for the first time; recursion adds `'2` and so on.
        let names = trace.lines().filter_map(|line| line.split_once("fn=(")?.1.split_once(") "));
        ran.extend(names.map(|(_, name)| name.split('\'').next().unwrap_or(name).to_owned()));
    }
    Ok(ran)
}
