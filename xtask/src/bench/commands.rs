//! Whole commands: `haft call` against ripgrep, fd and cat, from start to exit.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::Bench;
use super::measure::{Row, alternate, median};
use crate::Done;

/// One case: Haft's arguments and the peer's.
struct Case {
    name: &'static str,
    arguments: Value,
    peer: Vec<&'static str>,
}

pub(crate) fn grep(bench: &mut Bench) -> Done {
    let big = bench.sample.big.clone();
    let lines = |pattern: &str| json!({"pattern": pattern, "output_mode": "content"});
    let with = |mut value: Value, key: &str, more: Value| {
        value[key] = more;
        value
    };
    let cases = [
        Case {
            name: "literal",
            arguments: lines("needle_in_haystack"),
            peer: vec!["-n", "needle_in_haystack"],
        },
        Case { name: "common, -l", arguments: json!({"pattern": "return"}), peer: vec!["-l", "return"] },
        Case { name: "regex", arguments: lines(r"w\d+7 Sher\w+"), peer: vec!["-n", r"w\d+7 Sher\w+"] },
        Case {
            name: "ignoring case",
            arguments: with(lines("sherlock"), "-i", json!(true)),
            peer: vec!["-n", "-i", "sherlock"],
        },
        Case {
            name: "count",
            arguments: json!({"pattern": "struct", "output_mode": "count"}),
            peer: vec!["-c", "struct"],
        },
        Case {
            name: "context",
            arguments: with(lines("unsafe"), "-C", json!(2)),
            peer: vec!["-n", "-C", "2", "unsafe"],
        },
    ];
    for case in cases {
        let rg = bench.rg.clone();
        let tree = bench.sample.tree.clone();
        compare(
            bench,
            "grep",
            "rg",
            &format!("{}, 30,000 files", case.name),
            "Grep",
            &case.arguments,
            Command::new(&rg).args(&case.peer).current_dir(&tree),
            15,
        )?;
        let arguments = with(case.arguments.clone(), "path", json!(big));
        compare(
            bench,
            "grep",
            "rg",
            &format!("{}, 500 MB", case.name),
            "Grep",
            &arguments,
            Command::new(&rg).args(&case.peer).arg(&big),
            7,
        )?;
    }
    Ok(())
}

pub(crate) fn glob(bench: &mut Bench) -> Done {
    let (fd, rg, tree) = (bench.fd.clone(), bench.rg.clone(), bench.sample.tree.clone());
    for (name, pattern, fd_args, rg_args) in [
        ("one kind", "**/*.rs", vec!["-t", "f", "-g", "*.rs"], vec!["--files", "-g", "*.rs"]),
        ("all", "**/*", vec!["-t", "f"], vec!["--files"]),
        (
            "one directory",
            "d3/**/*.md",
            vec!["-t", "f", "-g", "*.md", "d3"],
            vec!["--files", "-g", "*.md", "d3"],
        ),
    ] {
        let arguments = json!({"pattern": pattern});
        compare(
            bench,
            "glob",
            "fd",
            &format!("{name}, 30,000 files"),
            "Glob",
            &arguments,
            Command::new(&fd).args(fd_args).current_dir(&tree),
            21,
        )?;
        compare(
            bench,
            "glob",
            "rg --files",
            &format!("{name}, 30,000 files"),
            "Glob",
            &arguments,
            Command::new(&rg).args(rg_args).current_dir(&tree),
            21,
        )?;
    }
    // What Glob really does: sorted by age. Only rg has that in one command.
    let arguments = json!({"pattern": "**/*"});
    let mut sorted = Command::new(&rg);
    sorted.args(["--files", "--sortr", "modified"]).current_dir(&tree);
    compare(bench, "glob", "rg --sortr", "all, newest first", "Glob", &arguments, &mut sorted, 11)
}

pub(crate) fn start(bench: &mut Bench) -> Done {
    let file = bench.sample.scratch.join("small.txt");
    std::fs::write(&file, "hello\n".repeat(170)).map_err(|error| error.to_string())?;
    let (rg, read) = (bench.rg.clone(), json!({"file_path": file}));
    compare(bench, "start", "cat", "Read 1 KiB", "Read", &read, Command::new("cat").arg(&file), 61)?;
    let found = json!({"pattern": "hello", "path": file});
    compare(
        bench,
        "start",
        "rg",
        "Grep 1 KiB",
        "Grep",
        &found,
        Command::new(&rg).args(["-l", "hello"]).arg(&file),
        61,
    )
}

#[expect(clippy::too_many_arguments, reason = "one row of a table")]
fn compare(
    bench: &mut Bench,
    part: &'static str,
    peer: &str,
    case: &str,
    tool: &str,
    arguments: &Value,
    other: &mut Command,
    rounds: usize,
) -> Done {
    let home = bench.sample.scratch.join("home");
    let mut haft = call(&bench.haft, &home, &bench.sample.tree, tool, arguments);
    let mut ran = alternate(rounds, &mut [&mut haft, other])?;
    let (haft_ms, peer_ms) = (median(&mut ran[0].times), median(&mut ran[1].times));
    bench.table.add(Row {
        part,
        case: case.to_owned(),
        haft_ms,
        peer: peer.to_owned(),
        peer_ms: Some(peer_ms),
        ratio: Some(haft_ms / peer_ms),
        haft_peak_kib: Some(ran[0].peak_kib),
        peer_peak_kib: Some(ran[1].peak_kib),
    });
    Ok(())
}

pub(crate) fn call(haft: &Path, home: &Path, workspace: &Path, tool: &str, arguments: &Value) -> Command {
    let mut command = Command::new(haft);
    command.args(["call", tool, &arguments.to_string()]).env("HAFT_HOME", home).current_dir(workspace);
    command
}
