//! The ledger's directory: private, with clear errors when it cannot be used.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_ledger::{CallRecord, Ledger};
use haft_tool::ErrorKind;

use crate::fixture::{Fixture, blank_receipt, finish, handle, large};

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
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{} is {mode:o}", path.display());
    }
}

#[test]
fn everything_is_private_even_if_it_was_open_to_others() {
    let fixture = Fixture::new();
    fixture.write("a", &large(1), b"x");
    assert_private(&fixture.home());
    fixture.ledger.check().unwrap();
    for path in ["", "ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let path = fixture.home().join(path);
        let open = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, Permissions::from_mode(open)).unwrap();
        let error = fixture.ledger.check().unwrap_err();
        assert!(error.message.contains("open to other users"), "{error}");
        Ledger::open(fixture.home()).unwrap().check().unwrap();
    }
    assert_private(&fixture.home());
}

#[test]
fn missing_parents_are_created() {
    let dir = tempfile::tempdir().unwrap();
    Ledger::open(dir.path().join("a/b/c")).unwrap();
    assert_eq!(fs::metadata(dir.path().join("a")).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn relative_path_or_file_is_refused() {
    assert_eq!(Ledger::open("some/where").unwrap_err().kind, ErrorKind::InvalidPath);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Ledger::open(&file).unwrap_err().message.contains("is not a directory"));
    assert!(Ledger::open(file.join("home")).is_err());
}

#[test]
fn ledger_of_another_version_is_left_alone() {
    let fixture = Fixture::new();
    for (version, expected) in [(99, "newer version of Haft"), (1, "format 1, which this version")] {
        fixture.tamper(&format!("PRAGMA user_version = {version}"));
        let error = Ledger::open(fixture.home()).unwrap_err();
        assert!(error.message.contains(expected) && error.message.contains("HAFT_HOME"), "{error}");
    }
}

/// The table of runs as version 9 had it.
const DRIVEN: &str =
    "CREATE TABLE driven (session TEXT NOT NULL PRIMARY KEY, process TEXT NOT NULL, since INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;";

#[test]
fn ledger_of_an_earlier_version_is_upgraded() {
    let without_names = "DROP INDEX sessions_by_name; ALTER TABLE sessions DROP COLUMN name";
    let without_feed = "DROP TRIGGER feed_session; DROP TRIGGER feed_call; DROP TRIGGER feed_call_change; \
        DROP TRIGGER feed_event; DROP TABLE feed; DROP TABLE questions; DROP TABLE answering; DROP TABLE searches";
    let older = [
        format!("DROP TABLE inbox; {without_names}; DROP TABLE chunks; PRAGMA user_version = 5"),
        format!("DROP TABLE inbox; {without_names}; PRAGMA user_version = 6"),
        "DROP TABLE inbox; PRAGMA user_version = 7".to_owned(),
        "DROP INDEX inbox_by_message_of_chat; \
         CREATE UNIQUE INDEX inbox_by_message ON inbox (workspace, channel, message); PRAGMA user_version = 8"
            .to_owned(),
        format!("{DRIVEN} PRAGMA user_version = 9"),
    ];
    for older in older {
        let fixture = Fixture::new();
        fixture.tamper(&format!("{without_feed}; DROP TABLE driven; {older}"));
        for _ in 0..2 {
            assert!(Ledger::open(fixture.home()).is_ok());
        }
        fixture.tamper(
            "SELECT count(*) FROM chunks; SELECT count(*) FROM inbox; UPDATE sessions SET name = 'review'",
        );
        assert_eq!(fixture.ledger.session("review").unwrap().id, fixture.session);
        assert!(fixture.ledger.drive_run(&fixture.session).is_ok());
        assert!(fixture.ledger.feed_position().unwrap() > 0);
        let inbox = fixture.ledger.inbox(Path::new("/work")).unwrap();
        for chat in ["one", "two"] {
            assert!(inbox.accept("hook", chat, "message", None, "hello").unwrap().is_some());
        }
    }
}

#[test]
fn file_that_is_no_ledger_is_not_overwritten() {
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
fn check_finds_a_damaged_database() {
    let fixture = Fixture::new();
    for _ in 0..200 {
        fixture.read();
    }
    fixture.tamper("PRAGMA wal_checkpoint(TRUNCATE)");
    let mut bytes = fs::read(fixture.database()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle - 8_192..middle + 8_192].fill(0xa5);
    fs::write(fixture.database(), bytes).unwrap();
    let error = Ledger::open(fixture.home()).and_then(|ledger| ledger.check()).unwrap_err();
    assert!(error.message.contains("damaged"), "{error}");
}

#[test]
fn next_process_finds_the_receipts() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let receipt = finish(&CallRecord::new(handle(&home), blank_receipt()));
    let ledger = Ledger::open(&home).unwrap();
    assert_eq!(ledger.receipt(1).unwrap(), receipt);
    assert_eq!(ledger.home(), home);
}

#[test]
fn write_ahead_log_does_not_grow_from_process_to_process() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let longest = (0..300).map(|_| {
        let handle = handle(&home);
        finish(&CallRecord::new(Arc::clone(&handle), blank_receipt()));
        drop(handle);
        fs::metadata(home.join("ledger.db-wal")).unwrap().len()
    });
    assert!(longest.max().unwrap() < 1_000_000);
    assert_eq!(Ledger::open(&home).unwrap().stats().unwrap().receipts, 300);
}
