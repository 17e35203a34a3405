//! Concurrent writers lose nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use haft_tool::{ErrorKind, Files};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::fixture::Fixture;

/// Appends a line through Haft; retries on a conflict.
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
    assert_eq!(
        (lines.len(), found.len()),
        (expected.len(), expected.len()),
        "a line came twice or from nowhere"
    );
}

fn threads_append(threads: usize, rounds: usize, path: &str) {
    let fixture = Fixture::new();
    let path = fixture.ws(path);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (files, path) = (fixture.files(), &path);
            scope.spawn(move || {
                for round in 0..rounds {
                    append(&files, path, &format!("{thread} {round}"));
                }
            });
        }
    });
    assert_all_there(
        &path,
        (0..threads).flat_map(|thread| (0..rounds).map(move |round| format!("{thread} {round}"))),
    );
    let directory = path.parent().unwrap().strip_prefix(&fixture.base).unwrap().to_str().unwrap();
    assert_eq!(fixture.names(directory), ["file"], "something was left behind");
}

#[test]
fn two_threads_lose_no_line() {
    threads_append(2, 200, "file");
}

#[test]
fn eight_threads_lose_no_line() {
    threads_append(8, 200, "file");
}

#[test]
fn eight_threads_create_the_same_directories() {
    for _ in 0..20 {
        threads_append(8, 1, "a/b/file");
    }
}

/// A writer that does not take Haft's lock: it exchanges its new file with the existing one and appends again what it thereby
/// removed. So every line that is missing at the end was lost by Haft.
fn append_without_lock(path: &Path, over: &AtomicBool) -> usize {
    let own = path.with_file_name("foreign");
    let (mut count, mut pending) = (0, Vec::new());
    while !(over.load(Ordering::SeqCst) && pending.is_empty() && count > 0) {
        if pending.is_empty() {
            pending.push(format!("foreign {count}"));
            count += 1;
        }
        let mut text = fs::read_to_string(path).unwrap();
        let there: BTreeSet<String> = text.lines().map(ToOwned::to_owned).collect();
        for line in pending.drain(..).filter(|line| !there.contains(line)) {
            text.push_str(&line);
            text.push('\n');
        }
        fs::write(&own, &text).unwrap();
        renameat_with(CWD, &own, CWD, path, RenameFlags::EXCHANGE).unwrap();
        let put: BTreeSet<&str> = text.lines().collect();
        let taken = fs::read_to_string(&own).unwrap();
        pending.extend(taken.lines().filter(|line| !put.contains(line)).map(ToOwned::to_owned));
    }
    fs::remove_file(own).unwrap();
    count
}

#[test]
fn writer_without_lock_loses_no_line() {
    const ROUNDS: usize = 300;
    let fixture = Fixture::new();
    let path = fixture.put("ws/file", "");
    let over = AtomicBool::new(false);
    let foreign = std::thread::scope(|scope| {
        let foreign = scope.spawn(|| append_without_lock(&path, &over));
        let files = fixture.files();
        for round in 0..ROUNDS {
            append(&files, &path, &format!("haft {round}"));
        }
        over.store(true, Ordering::SeqCst);
        foreign.join().unwrap()
    });
    // A version that is kept under the temporary name is not lost.
    let kept = fixture.names("ws").into_iter().map(|name| fs::read_to_string(fixture.ws(&name)).unwrap());
    let text = kept.collect::<String>();
    let found: BTreeSet<&str> = text.lines().collect();
    for line in (0..foreign).map(|n| format!("foreign {n}")).chain((0..ROUNDS).map(|n| format!("haft {n}"))) {
        assert!(found.contains(line.as_str()), "lost: {line}");
    }
}

#[test]
fn edit_is_repeated_after_a_concurrent_change() {
    let fixture = Fixture::new();
    let path = fixture.put("ws/file", "one");
    let mut tries = 0;
    let written = fixture.files().update(&path, &mut |old| {
        tries += 1;
        if tries == 1 {
            // As an editor does it; below as a shell does it.
            fs::write(fixture.ws("new"), "two").unwrap();
            fs::rename(fixture.ws("new"), &path).unwrap();
        } else if tries == 2 {
            fs::write(&path, "and three").unwrap();
        }
        Ok([old.unwrap(), b" haft"].concat())
    });
    assert_eq!(written.unwrap().after.size, "and three haft".len() as u64);
    assert_eq!((tries, fs::read(&path).unwrap()), (3, b"and three haft".to_vec()));
    assert_eq!(fixture.names("ws"), ["file"]);
}

#[test]
fn file_that_keeps_changing_is_a_conflict() {
    let fixture = Fixture::new();
    let path = fixture.put("ws/file", "0");
    let mut tries = 0;
    let result = fixture.files().update(&path, &mut |_| {
        tries += 1;
        fs::write(&path, format!("theirs {tries}")).unwrap();
        Ok(b"haft".to_vec())
    });
    assert_eq!(result.unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("theirs {tries}"));
    assert_eq!(fixture.names("ws"), ["file"]);
}

#[test]
fn concurrent_removal_and_creation_are_seen() {
    let fixture = Fixture::new();
    let path = fixture.put("ws/file", "old");
    let mut seen = Vec::new();
    let edit = &mut |old: Option<&[u8]>| {
        seen.push(old.map(<[u8]>::to_vec));
        match seen.len() {
            1 => fs::remove_file(&path).unwrap(),
            2 => fs::write(&path, "again").unwrap(),
            _ => {}
        }
        Ok(b"haft".to_vec())
    };
    fixture.files().update(&path, edit).unwrap();
    assert_eq!(seen, [Some(b"old".to_vec()), None, Some(b"again".to_vec())]);
    assert_eq!((fs::read(&path).unwrap(), fixture.names("ws")), (b"haft".to_vec(), vec!["file".to_owned()]));
}

#[test]
fn only_calls_that_write_the_same_path_wait_for_each_other() {
    let mut fixture = Fixture::new();
    let (path, other) = (fixture.put("ws/file", "old"), fixture.ws("other"));
    // Every program can take this lock.
    let directory = fs::File::open(fixture.ws("")).unwrap();
    directory.lock().unwrap();
    let files = fixture.files();
    // A call that was cancelled does not wait.
    fixture.cancel = haft_tool::Cancel::new();
    fixture.cancel.cancel();
    let cancelled = fixture.files();
    let mut reached = Vec::new();
    files
        .update(&path, &mut |_| {
            for path in [&path, &other] {
                let tried = cancelled.update(path, &mut |_| {
                    reached.push(path.clone());
                    Ok(b"inner".to_vec())
                });
                assert_eq!(tried.unwrap_err().kind, ErrorKind::Interrupted);
            }
            Ok(b"new".to_vec())
        })
        .unwrap();
    assert_eq!(reached, [other]);
    assert_eq!(fs::read(path).unwrap(), b"new");
}

#[test]
fn write_does_not_follow_its_directory_to_another_path() {
    for existing in [Some("old"), None] {
        let fixture = Fixture::new();
        let (path, moved) = (fixture.ws("x/tasks.json"), fixture.ws(".vscode"));
        fs::create_dir(fixture.ws("x")).unwrap();
        if let Some(text) = existing {
            fs::write(&path, text).unwrap();
        }
        let mut tries = 0;
        let edit = &mut |_: Option<&[u8]>| {
            tries += 1;
            if tries == 1 {
                fs::rename(fixture.ws("x"), &moved).unwrap();
            }
            Ok(b"new".to_vec())
        };
        fixture.files().update(&path, edit).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_to_string(moved.join("tasks.json")).ok().as_deref(), existing);
        assert_eq!(fixture.names("ws/.vscode").len(), existing.iter().len());
    }
}
