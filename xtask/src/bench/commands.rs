//! Whole commands: `haft call` against ripgrep, fd and cat, from start to exit.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::Bench;
use super::measure::{Row, alternate};
use crate::Done;
use crate::peers::{FD, RIPGREP};

/// How often a search of many small files, of one large file and a start are measured.
const TREE_ROUNDS: usize = 15;
const BIG_FILE_ROUNDS: usize = 7;
const START_ROUNDS: usize = 61;

pub(super) fn grep(bench: &mut Bench) -> Done {
    let rg = RIPGREP.find()?;
    let (tree, big) = (bench.sample.tree.clone(), bench.sample.big.clone());
    let lines = |pattern: &str| json!({"pattern": pattern, "output_mode": "content"});
    let with = |mut value: Value, key: &str, more: Value| {
        value[key] = more;
        value
    };
    let cases: [(&str, Value, &[&str]); 6] = [
        ("literal", lines("needle_in_haystack"), &["-n", "needle_in_haystack"]),
        ("common, -l", json!({"pattern": "return"}), &["-l", "return"]),
        ("regex", lines(r"w\d+7 Sher\w+"), &["-n", r"w\d+7 Sher\w+"]),
        ("ignoring case", with(lines("sherlock"), "-i", json!(true)), &["-n", "-i", "sherlock"]),
        ("count", json!({"pattern": "struct", "output_mode": "count"}), &["-c", "struct"]),
        ("context", with(lines("unsafe"), "-C", json!(2)), &["-n", "-C", "2", "unsafe"]),
    ];
    for (name, arguments, peer) in cases {
        let mut on_tree = Command::new(&rg);
        on_tree.args(peer).current_dir(&tree);
        compare(
            bench,
            ("grep", &format!("{name}, 30,000 files")),
            ("Grep", &arguments),
            ("rg", &mut on_tree),
            TREE_ROUNDS,
        )?;
        let mut on_big = Command::new(&rg);
        on_big.args(peer).arg(&big);
        let arguments = with(arguments, "path", json!(big));
        compare(
            bench,
            ("grep", &format!("{name}, 500 MB")),
            ("Grep", &arguments),
            ("rg", &mut on_big),
            BIG_FILE_ROUNDS,
        )?;
    }
    Ok(())
}

pub(super) fn glob(bench: &mut Bench) -> Done {
    let (fd, rg, tree) = (FD.find()?, RIPGREP.find()?, bench.sample.tree.clone());
    let cases: [(&str, &str, &[&str], &[&str]); 3] = [
        ("one kind", "**/*.rs", &["-t", "f", "-g", "*.rs"], &["--files", "-g", "*.rs"]),
        ("all", "**/*", &["-t", "f"], &["--files"]),
        ("one directory", "d3/**/*.md", &["-t", "f", "-g", "*.md", "d3"], &["--files", "-g", "*.md", "d3"]),
    ];
    for (name, pattern, fd_args, rg_args) in cases {
        let (arguments, case) = (json!({"pattern": pattern}), format!("{name}, 30,000 files"));
        for (peer, program, args) in [("fd", &fd, fd_args), ("rg --files", &rg, rg_args)] {
            let mut command = Command::new(program);
            command.args(args).current_dir(&tree);
            compare(bench, ("glob", &case), ("Glob", &arguments), (peer, &mut command), TREE_ROUNDS)?;
        }
    }
    // Glob sorts by age; only rg has that in one command.
    let mut sorted = Command::new(&rg);
    sorted.args(["--files", "--sortr", "modified"]).current_dir(&tree);
    let arguments = json!({"pattern": "**/*"});
    compare(
        bench,
        ("glob", "all, newest first"),
        ("Glob", &arguments),
        ("rg --sortr", &mut sorted),
        TREE_ROUNDS,
    )
}

pub(super) fn start(bench: &mut Bench) -> Done {
    let file = bench.sample.scratch.join("small.txt");
    std::fs::write(&file, "hello\n".repeat(170)).map_err(|error| error.to_string())?;
    let read = json!({"file_path": file});
    let mut cat = Command::new("cat");
    compare(bench, ("start", "Read 1 KiB"), ("Read", &read), ("cat", cat.arg(&file)), START_ROUNDS)?;
    let found = json!({"pattern": "hello", "path": file});
    let mut rg = Command::new(RIPGREP.find()?);
    compare(
        bench,
        ("start", "Grep 1 KiB"),
        ("Grep", &found),
        ("rg", rg.args(["-l", "hello"]).arg(&file)),
        START_ROUNDS,
    )
}

/// Measures one tool call as a command against a peer's command, in the sample's tree.
fn compare(
    bench: &mut Bench,
    (part, case): (&'static str, &str),
    (tool, arguments): (&str, &Value),
    (peer, command): (&str, &mut Command),
    rounds: usize,
) -> Done {
    let home = bench.sample.scratch.join("home");
    let mut call = haft_call(&bench.haft, &home, &bench.sample.tree, tool, arguments);
    let [haft, other] = alternate(rounds, &mut [&mut call, command])?;
    let row = Row::new(part, case, haft.median_ms, peer, other.median_ms);
    bench.table.add(row.with_peaks(Some(haft.peak_kib), Some(other.peak_kib)));
    Ok(())
}

pub(super) fn haft_call(
    haft: &Path,
    home: &Path,
    workspace: &Path,
    tool: &str,
    arguments: &Value,
) -> Command {
    let mut command = Command::new(haft);
    command.args(["call", tool, &arguments.to_string()]).env("HAFT_HOME", home).current_dir(workspace);
    command
}
