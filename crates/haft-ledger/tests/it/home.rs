//! The directory: private, and clearly told when it cannot be used.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use haft_ledger::Ledger;
use haft_tool::ErrorKind;

use crate::setting::{call, large, new_session, setting};

fn modes(dir: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = vec![(dir.to_owned(), fs::metadata(dir).unwrap().mode() & 0o7777)];
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(modes(&path));
        } else {
            found.push((path.clone(), fs::metadata(&path).unwrap().mode() & 0o7777));
        }
    }
    found
}

fn assert_private(dir: &Path) {
    for (path, mode) in modes(dir) {
        let right = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, right, "{} is {mode:o}", path.display());
    }
}

#[test]
fn everything_in_the_home_is_for_the_user_alone_also_when_it_was_found_open() {
    let set = setting();
    set.read();
    set.ledger.keep(&large(1)).unwrap();
    assert_private(&set.home());
    set.ledger.check().unwrap();
    for path in ["", "ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let path = set.home().join(path);
        let open = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, Permissions::from_mode(open)).unwrap();
        let error = set.ledger.check().unwrap_err();
        assert!(error.message.contains("open to other users"), "{error}");
        Ledger::open(set.home()).unwrap().check().unwrap();
    }
    assert_private(&set.home());
}

#[test]
fn missing_parents_are_made() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("a/b/c");
    Ledger::open(&home).unwrap();
    assert_eq!(fs::metadata(dir.path().join("a")).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_relative_home_or_one_that_is_a_file_is_refused() {
    assert_eq!(Ledger::open("some/where").unwrap_err().kind, ErrorKind::InvalidPath);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Ledger::open(&file).unwrap_err().message.contains("is not a directory"));
    assert!(Ledger::open(file.join("home")).is_err());
}

#[test]
fn a_ledger_of_a_newer_version_is_left_alone() {
    let set = setting();
    set.meddle("PRAGMA user_version = 99");
    let error = Ledger::open(set.home()).unwrap_err();
    assert!(error.message.contains("newer Haft") && error.message.contains("99"), "{error}");
}

#[test]
fn ledger_of_an_older_version_is_left_alone() {
    let set = setting();
    set.meddle("PRAGMA user_version = 1");
    let error = Ledger::open(set.home()).unwrap_err();
    assert!(error.message.contains("format 1, which this Haft no longer reads"), "{error}");
}

#[test]
fn what_is_no_ledger_is_told_and_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    let database = home.join("ledger.db");
    fs::write(&database, "this is a letter, not a database; ".repeat(100)).unwrap();
    assert!(Ledger::open(&home).unwrap_err().message.contains("is damaged"));
    assert!(fs::read_to_string(&database).unwrap().starts_with("this is a letter"));
    fs::remove_file(&database).unwrap();
    rusqlite::Connection::open(&database).unwrap().execute_batch("CREATE TABLE notes (text)").unwrap();
    assert!(Ledger::open(&home).unwrap_err().message.contains("not a ledger"));
}

#[test]
fn a_damaged_database_is_found_by_check() {
    let set = setting();
    for _ in 0..200 {
        set.read();
    }
    let (home, database) = (set.home(), set.database());
    set.meddle("PRAGMA wal_checkpoint(TRUNCATE)");
    let mut bytes = fs::read(&database).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle - 8_192..middle + 8_192].fill(0xa5);
    fs::write(&database, bytes).unwrap();
    let error = Ledger::open(&home).and_then(|ledger| ledger.check()).unwrap_err();
    assert!(error.message.contains("damaged"), "{error}");
}

#[test]
fn a_ledger_lives_on_in_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let first = Ledger::open(&home).unwrap();
    let session = first.start_session(&new_session("/w")).unwrap();
    first.finish(&mut call(&session)).unwrap();
    drop(first);
    let second = Ledger::open(&home).unwrap();
    assert_eq!(second.receipt(1).unwrap().session, session);
    assert_eq!(second.home(), home);
}

#[test]
fn the_log_does_not_grow_from_one_short_process_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let session = Ledger::open(&home).unwrap().start_session(&new_session("/w")).unwrap();
    let longest = (0..300).map(|_| {
        Ledger::open(&home).unwrap().finish(&mut call(&session)).unwrap();
        fs::metadata(home.join("ledger.db-wal")).unwrap().len()
    });
    assert!(longest.max().unwrap() < 1_000_000);
    assert_eq!(Ledger::open(&home).unwrap().stats().unwrap().receipts, 300);
}
