//! Which files a walk visits.

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_tool::{ErrorKind, Files, ToolError, WalkRequest};

use crate::common::{SECRET, Stage};

/// The files a walk visits, relative to the workspace and sorted.
fn visited(stage: &Stage, walk: &WalkRequest) -> Result<Vec<String>, ToolError> {
    let found = Mutex::new(Vec::new());
    stage.files().walk(walk, &mut || {
        Box::new(|file| {
            let path = file.path().strip_prefix(stage.ws("")).unwrap_or(file.path());
            found.lock().unwrap().push(path.to_string_lossy().into_owned());
            ControlFlow::Continue(())
        })
    })?;
    let mut found = found.into_inner().unwrap();
    found.sort();
    Ok(found)
}

fn from(stage: &Stage) -> WalkRequest {
    WalkRequest { root: stage.ws(""), ..WalkRequest::default() }
}

#[test]
fn what_git_ignores_and_what_is_hidden_is_passed_over() {
    let stage = Stage::new();
    fs::create_dir(stage.ws(".git")).unwrap();
    stage.put("ws/.gitignore", "*.log\n/target/\n!keep.log\n");
    for file in [
        "a.rs",
        "b.log",
        "keep.log",
        "target/x",
        "sub/target/y",
        "sub/c.log",
        ".hidden",
        ".dir/z",
        "sub/local",
    ] {
        stage.put(&format!("ws/{file}"), "");
    }
    stage.put("ws/sub/.gitignore", "local\n");
    assert_eq!(visited(&stage, &from(&stage)).unwrap(), ["a.rs", "keep.log", "sub/target/y"]);
    let all = visited(&stage, &WalkRequest { hidden: true, ..from(&stage) }).unwrap();
    assert_eq!(
        all,
        [".dir/z", ".gitignore", ".hidden", "a.rs", "keep.log", "sub/.gitignore", "sub/target/y"]
    );
    let below = WalkRequest { root: stage.ws("sub"), ..WalkRequest::default() };
    assert_eq!(visited(&stage, &below).unwrap(), ["sub/target/y"], "rules from above hold below");
}

#[test]
fn globs_and_types_choose() {
    let stage = Stage::new();
    for file in ["a.rs", "b.py", "sub/c.rs", "sub/d.toml", "sub/deep/e.rs"] {
        stage.put(&format!("ws/{file}"), "");
    }
    let globs = |globs: &[&str]| {
        let globs = globs.iter().map(|&glob| glob.to_owned()).collect();
        visited(&stage, &WalkRequest { globs, ..from(&stage) }).unwrap()
    };
    assert_eq!(globs(&["*.rs"]), ["a.rs", "sub/c.rs", "sub/deep/e.rs"]);
    assert_eq!(globs(&["*.rs", "!sub/deep/**"]), ["a.rs", "sub/c.rs"]);
    assert_eq!(globs(&["!*.rs"]), ["b.py", "sub/d.toml"]);
    assert_eq!(globs(&["*.{py,toml}"]), ["b.py", "sub/d.toml"]);
    let rust = WalkRequest { file_type: Some("rust".into()), ..from(&stage) };
    assert_eq!(visited(&stage, &rust).unwrap(), ["a.rs", "sub/c.rs", "sub/deep/e.rs"]);
}

#[test]
fn a_bad_glob_or_type_is_told_as_a_bad_argument() {
    let stage = Stage::new();
    let bad_glob = WalkRequest { globs: vec!["a[".into()], ..from(&stage) };
    let bad_type = WalkRequest { file_type: Some("no-such-type".into()), ..from(&stage) };
    for (walk, named) in [(bad_glob, "a["), (bad_type, "no-such-type")] {
        let error = visited(&stage, &walk).unwrap_err();
        assert_eq!(
            (error.kind, error.message.contains(named)),
            (ErrorKind::InvalidArguments, true),
            "{error}"
        );
    }
    let nowhere = WalkRequest { root: stage.ws("none"), ..WalkRequest::default() };
    assert_eq!(visited(&stage, &nowhere).unwrap_err().kind, ErrorKind::FileNotFound);
}

#[test]
fn links_that_are_come_across_are_not_followed() {
    let stage = Stage::new();
    stage.put("ws/dir/file", "");
    stage.link(stage.path("out"), "ws/out");
    stage.link("../out/file", "ws/outfile");
    stage.link("dir", "ws/again");
    stage.link("..", "ws/dir/up");
    assert_eq!(visited(&stage, &from(&stage)).unwrap(), ["dir/file"]);
}

#[test]
fn a_file_that_is_named_is_visited_also_through_a_link_that_stays_inside() {
    let stage = Stage::new();
    stage.put("ws/.hidden", "");
    stage.link(".hidden", "ws/link");
    for name in [".hidden", "link"] {
        let named = WalkRequest { root: stage.ws(name), ..WalkRequest::default() };
        assert_eq!(visited(&stage, &named).unwrap(), [name]);
    }
}

#[test]
fn a_visitor_that_has_seen_enough_stops_the_walk() {
    let stage = Stage::new();
    for number in 0..2_000 {
        stage.put(&format!("ws/{}/{number}", number % 40), "");
    }
    let (seen, visitors) = (AtomicUsize::new(0), AtomicUsize::new(0));
    stage
        .files()
        .walk(&from(&stage), &mut || {
            visitors.fetch_add(1, Ordering::SeqCst);
            Box::new(|_| {
                seen.fetch_add(1, Ordering::SeqCst);
                ControlFlow::Break(())
            })
        })
        .unwrap();
    let (seen, visitors) = (seen.into_inner(), visitors.into_inner());
    assert!((1..=visitors).contains(&seen), "{visitors} visitors saw {seen} files after the first said stop");
}

#[test]
fn a_cancelled_walk_stops_and_says_so() {
    let stage = Stage::new();
    for number in 0..2_000 {
        stage.put(&format!("ws/{}/{number}", number % 40), "");
    }
    let seen = AtomicUsize::new(0);
    let result = stage.files().walk(&from(&stage), &mut || {
        Box::new(|_| {
            seen.fetch_add(1, Ordering::SeqCst);
            stage.cancel.cancel();
            ControlFlow::Continue(())
        })
    });
    assert_eq!(result.unwrap_err().kind, ErrorKind::Interrupted);
    assert!(seen.into_inner() < 2_000, "it went on to the end");
}

#[test]
fn what_was_found_is_opened_in_the_directory_where_it_was_found() {
    let stage = Stage::new();
    stage.put("ws/dir/file", "inside");
    let swap = || {
        fs::rename(stage.ws("dir"), stage.ws("old")).unwrap();
        stage.link(stage.path("out"), "ws/dir");
    };
    let found: Mutex<Vec<(PathBuf, Vec<u8>)>> = Mutex::default();
    stage
        .files()
        .walk(&from(&stage), &mut || {
            Box::new(|file| {
                swap();
                let mut bytes = Vec::new();
                if let Ok(mut open) = file.open() {
                    std::io::Read::read_to_end(&mut open, &mut bytes).unwrap();
                }
                found.lock().unwrap().push((file.path().to_owned(), bytes));
                ControlFlow::Break(())
            })
        })
        .unwrap();
    let found = found.into_inner().unwrap();
    assert_eq!(found.len(), 1);
    assert_ne!(found[0].1, SECRET);
    stage.assert_outside_untouched();
}
