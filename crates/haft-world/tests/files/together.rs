//! Several writers at once: no line is ever lost.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use haft_tool::{ErrorKind, Files};

use crate::common::Stage;

/// Adds a line through Haft, again if somebody else was in the way.
fn append(files: &dyn Files, path: &Path, line: &str) {
    loop {
        let done = files.update(path, &mut |old| {
            let mut bytes = old.unwrap_or_default().to_vec();
            bytes.extend(line.as_bytes());
            bytes.push(b'\n');
            Ok(bytes)
        });
        match done {
            Ok(_) => return,
            Err(error) => assert_eq!(error.kind, ErrorKind::Conflict, "{error}"),
        }
    }
}

fn assert_all_there(path: &Path, expected: impl IntoIterator<Item = String>) {
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let found: BTreeSet<String> = lines.iter().map(|&line| line.to_owned()).collect();
    let expected: BTreeSet<String> = expected.into_iter().collect();
    let lost: Vec<_> = expected.difference(&found).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    assert_eq!((lines.len(), found.len()), (expected.len(), expected.len()), "a line came twice or from nowhere");
}

fn threads_append(threads: usize, rounds: usize, path: &str) {
    let stage = Stage::new();
    let path = stage.ws(path);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (files, path) = (stage.files(), &path);
            scope.spawn(move || {
                for round in 0..rounds {
                    append(&files, path, &format!("{thread} {round}"));
                }
            });
        }
    });
    assert_all_there(&path, (0..threads).flat_map(|thread| (0..rounds).map(move |round| format!("{thread} {round}"))));
    let directory = path.parent().unwrap().strip_prefix(&stage.base).unwrap().to_str().unwrap();
    assert_eq!(stage.names(directory), ["file"], "something was left behind");
}

#[test]
fn two_threads_that_append_to_one_file_lose_no_line() {
    threads_append(2, 200, "file");
}

#[test]
fn eight_threads_that_append_to_one_file_lose_no_line() {
    threads_append(8, 200, "file");
}

#[test]
fn eight_threads_that_make_the_same_directories_and_file_lose_no_line() {
    for _ in 0..20 {
        threads_append(8, 1, "a/b/file");
    }
}

#[test]
fn a_writer_that_knows_nothing_of_haft_loses_no_line_and_takes_none() {
    const ROUNDS: usize = 300;
    let stage = Stage::new();
    let path = stage.put("ws/file", "");
    let written = std::thread::scope(|scope| {
        let over = AtomicBool::new(false);
        let over = &over;
        let foreign = scope.spawn({
            let (path, own) = (&path, stage.ws("foreign.new"));
            move || {
                // Like every editor: read, write a new file, look once more, rename. What it renames over is what it
                // read, or it starts again; only the last step can be raced, so it takes Haft's own lock for that.
                let directory = fs::File::open(path.parent().unwrap()).unwrap();
                let mut lines = Vec::new();
                while !over.load(Ordering::SeqCst) || lines.is_empty() {
                    let line = format!("foreign {}", lines.len());
                    let mut bytes = fs::read(path).unwrap();
                    bytes.extend(format!("{line}\n").as_bytes());
                    fs::write(&own, &bytes).unwrap();
                    directory.lock().unwrap();
                    let unchanged = bytes.starts_with(&fs::read(path).unwrap()) && fs::read(path).unwrap().len() + line.len() + 1 == bytes.len();
                    if unchanged {
                        fs::rename(&own, path).unwrap();
                        lines.push(line);
                    }
                    directory.unlock().unwrap();
                }
                lines
            }
        });
        let files = stage.files();
        for round in 0..ROUNDS {
            append(&files, &path, &format!("haft {round}"));
        }
        over.store(true, Ordering::SeqCst);
        foreign.join().unwrap()
    });
    assert_all_there(&path, written.into_iter().chain((0..ROUNDS).map(|round| format!("haft {round}"))));
}
