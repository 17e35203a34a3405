//! Which files a walk visits.

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_tool::{ErrorKind, Files, ToolError, WalkRequest};

use crate::fixture::{Fixture, SECRET};

/// The files a walk visits, relative to the workspace and sorted.
fn visited(fixture: &Fixture, walk: &WalkRequest) -> Result<Vec<String>, ToolError> {
    let found = Mutex::new(Vec::new());
    fixture.files().walk(walk, &mut || {
        Box::new(|file| {
            let path = file.path().strip_prefix(fixture.ws("")).unwrap_or(file.path());
            found.lock().unwrap().push(path.to_string_lossy().into_owned());
            ControlFlow::Continue(())
        })
    })?;
    let mut found = found.into_inner().unwrap();
    found.sort();
    Ok(found)
}

fn from(fixture: &Fixture) -> WalkRequest {
    WalkRequest { root: fixture.ws(""), ..WalkRequest::default() }
}

#[test]
fn ignored_and_hidden_files_are_skipped() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.ws(".git")).unwrap();
    fixture.put("ws/.gitignore", "*.log\n/target/\n!keep.log\n");
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
        fixture.put(&format!("ws/{file}"), "");
    }
    fixture.put("ws/sub/.gitignore", "local\n");
    assert_eq!(visited(&fixture, &from(&fixture)).unwrap(), ["a.rs", "keep.log", "sub/target/y"]);
    let all = visited(&fixture, &WalkRequest { hidden: true, ..from(&fixture) }).unwrap();
    assert_eq!(
        all,
        [".dir/z", ".gitignore", ".hidden", "a.rs", "keep.log", "sub/.gitignore", "sub/target/y"]
    );
    let below = WalkRequest { root: fixture.ws("sub"), ..WalkRequest::default() };
    assert_eq!(visited(&fixture, &below).unwrap(), ["sub/target/y"], "rules from above hold below");
}

#[test]
fn walk_skips_version_control_and_does_not_open_secrets() {
    let mut fixture = Fixture::new();
    for file in [".git/config", ".hg/store", "sub/.env", "sub/.env.example", "sub/a"] {
        fixture.put(&format!("ws/{file}"), "");
    }
    let workspace = fixture.ws("");
    let hidden =
        |root: &str| WalkRequest { root: workspace.join(root), hidden: true, ..WalkRequest::default() };
    assert_eq!(visited(&fixture, &hidden("")).unwrap(), ["sub/.env", "sub/.env.example", "sub/a"]);
    assert_eq!(visited(&fixture, &hidden(".git")).unwrap(), [".git/config"], "it was named");
    let refused = |fixture: &Fixture, root: &str| {
        let refused = Mutex::new(Vec::new());
        let files = fixture.files();
        let walk = files.walk(&hidden(root), &mut || {
            Box::new(|file| {
                let name = file.path().file_name().unwrap().to_owned();
                refused.lock().unwrap().extend(file.open().is_err().then_some(name));
                ControlFlow::Continue(())
            })
        });
        walk.map(|()| refused.into_inner().unwrap())
    };
    assert_eq!(refused(&fixture, "").unwrap(), [".env"]);
    assert_eq!(refused(&fixture, "sub/.env").unwrap_err().kind, ErrorKind::PermissionDenied);
    fixture.scope.readable.push(fixture.ws("sub/.env"));
    assert!(refused(&fixture, "sub/.env").unwrap().is_empty(), "it was named");
}

#[test]
fn globs_and_types_select_files() {
    let fixture = Fixture::new();
    for file in ["a.rs", "b.py", "sub/c.rs", "sub/d.toml", "sub/deep/e.rs"] {
        fixture.put(&format!("ws/{file}"), "");
    }
    let globs = |globs: &[&str]| {
        let globs = globs.iter().map(|&glob| glob.to_owned()).collect();
        visited(&fixture, &WalkRequest { globs, ..from(&fixture) }).unwrap()
    };
    assert_eq!(globs(&["*.rs"]), ["a.rs", "sub/c.rs", "sub/deep/e.rs"]);
    assert_eq!(globs(&["*.rs", "!sub/deep/**"]), ["a.rs", "sub/c.rs"]);
    assert_eq!(globs(&["!*.rs"]), ["b.py", "sub/d.toml"]);
    assert_eq!(globs(&["*.{py,toml}"]), ["b.py", "sub/d.toml"]);
    let rust = WalkRequest { file_type: Some("rust".into()), ..from(&fixture) };
    assert_eq!(visited(&fixture, &rust).unwrap(), ["a.rs", "sub/c.rs", "sub/deep/e.rs"]);
}

#[test]
fn invalid_glob_or_type_is_an_error() {
    let fixture = Fixture::new();
    let bad_glob = WalkRequest { globs: vec!["a[".into()], ..from(&fixture) };
    let bad_type = WalkRequest { file_type: Some("no-such-type".into()), ..from(&fixture) };
    for (walk, named) in [(bad_glob, "a["), (bad_type, "no-such-type")] {
        let error = visited(&fixture, &walk).unwrap_err();
        assert_eq!(
            (error.kind, error.message.contains(named)),
            (ErrorKind::InvalidArguments, true),
            "{error}"
        );
    }
    let nowhere = WalkRequest { root: fixture.ws("none"), ..WalkRequest::default() };
    assert_eq!(visited(&fixture, &nowhere).unwrap_err().kind, ErrorKind::FileNotFound);
}

#[test]
fn walk_does_not_follow_links() {
    let fixture = Fixture::new();
    fixture.put("ws/dir/file", "");
    fixture.link(fixture.path("out"), "ws/out");
    fixture.link("../out/file", "ws/outfile");
    fixture.link("dir", "ws/again");
    fixture.link("..", "ws/dir/up");
    assert_eq!(visited(&fixture, &from(&fixture)).unwrap(), ["dir/file"]);
}

#[test]
fn file_as_root_is_visited() {
    let fixture = Fixture::new();
    fixture.put("ws/.hidden", "");
    fixture.link(".hidden", "ws/link");
    for name in [".hidden", "link"] {
        let named = WalkRequest { root: fixture.ws(name), ..WalkRequest::default() };
        assert_eq!(visited(&fixture, &named).unwrap(), [name]);
    }
}

#[test]
fn visitor_can_stop_the_walk() {
    let fixture = Fixture::new();
    for number in 0..2_000 {
        fixture.put(&format!("ws/{}/{number}", number % 40), "");
    }
    let (seen, visitors) = (AtomicUsize::new(0), AtomicUsize::new(0));
    fixture
        .files()
        .walk(&from(&fixture), &mut || {
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
fn cancelled_walk_is_an_error() {
    let fixture = Fixture::new();
    for number in 0..2_000 {
        fixture.put(&format!("ws/{}/{number}", number % 40), "");
    }
    let seen = AtomicUsize::new(0);
    let result = fixture.files().walk(&from(&fixture), &mut || {
        Box::new(|_| {
            seen.fetch_add(1, Ordering::SeqCst);
            fixture.cancel.cancel();
            ControlFlow::Continue(())
        })
    });
    assert_eq!(result.unwrap_err().kind, ErrorKind::Interrupted);
    assert!(seen.into_inner() < 2_000, "it went on to the end");
}

#[test]
fn visited_file_is_opened_in_its_directory() {
    let fixture = Fixture::new();
    fixture.put("ws/dir/file", "inside");
    let swap = || {
        fs::rename(fixture.ws("dir"), fixture.ws("old")).unwrap();
        fixture.link(fixture.path("out"), "ws/dir");
    };
    let found: Mutex<Vec<(PathBuf, Vec<u8>)>> = Mutex::default();
    fixture
        .files()
        .walk(&from(&fixture), &mut || {
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
    fixture.assert_outside_untouched();
}
