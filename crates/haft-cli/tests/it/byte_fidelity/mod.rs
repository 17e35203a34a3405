//! Edit and Write keep every byte outside the edit, in every encoding and with every kind of line end.
//!
//! What is counted: each generated file is written to the disk once, changed by one call through the library, and read
//! back. The model says in bytes what it must hold then. It knows nothing of how Haft decodes and encodes: the bytes of
//! each letter come from tables, and the letters outside the edit are copied as bytes.

mod encodings;
mod files;
mod model;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::{CallResult, Runtime, Value, json};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tempfile::TempDir;

use files::{ENCODINGS, Encoding, binary, edit_case, write_case};
use model::{Expected, edited, outside_is_kept, with_breaks_of};

const EDITED_FILES: usize = 10_400;
const WRITTEN_FILES: usize = 2_200;
const BINARY_FILES: usize = 800;
/// As many cases run at once.
const THREADS: usize = 4;

/// A runtime whose workspace and ledger lie in memory where that is to be had, because there a sync costs nothing.
struct Place {
    tokio: tokio::runtime::Runtime,
    runtime: Runtime,
    made: AtomicUsize,
    _folders: [TempDir; 2],
}

impl Place {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let folder = || if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let [workspace, home] = [(); 2].map(|()| folder().unwrap());
        let builder =
            Runtime::builder().workspace(workspace.path()).home(home.path()).dialect(haft::claude());
        Self {
            tokio: tokio::runtime::Runtime::new().unwrap(),
            runtime: builder.build().unwrap(),
            made: AtomicUsize::new(0),
            _folders: [workspace, home],
        }
    }

    /// A file of its own with these bytes, in the folder of one thread.
    fn file(&self, thread: usize, bytes: &[u8]) -> PathBuf {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let path = self.runtime.workspace().join(format!("{thread}/{number}.txt"));
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        path
    }

    fn call(&self, tool: &str, arguments: Value) -> CallResult {
        self.tokio.block_on(self.runtime.call(tool, arguments))
    }

    /// Runs `check` on so many generated cases, on several threads, the same ones in every run.
    fn for_all<S: Strategy>(
        &self,
        cases: usize,
        strategy: impl Fn() -> S + Sync,
        check: impl Fn(usize, S::Value) -> Result<(), TestCaseError> + Sync,
    ) {
        let failed = Mutex::new(None);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (strategy, check, failed) = (&strategy, &check, &failed);
                scope.spawn(move || {
                    fs::create_dir_all(self.runtime.workspace().join(thread.to_string())).unwrap();
                    let cases = u32::try_from(cases.div_ceil(THREADS)).unwrap();
                    let config = Config { cases, failure_persistence: None, ..Config::default() };
                    let seed = [u8::try_from(thread).unwrap(); 32];
                    let mut runner =
                        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
                    if let Err(error) = runner.run(&strategy(), |case| check(thread, case)) {
                        let why = match error {
                            TestError::Fail(why, case) => format!("{why}\nthe smallest case: {case:?}"),
                            TestError::Abort(why) => why.to_string(),
                        };
                        *failed.lock().unwrap() = Some(why);
                    }
                });
            }
        });
        let failed = failed.into_inner().unwrap();
        assert!(failed.is_none(), "{}", failed.unwrap_or_default());
    }
}

/// How often an outcome was seen, by encoding.
#[derive(Default)]
struct Tally([AtomicUsize; ENCODINGS.len()]);

impl Tally {
    fn add(&self, encoding: &Encoding) {
        let at = ENCODINGS.iter().position(|one| one.name == encoding.name).unwrap();
        self.0[at].fetch_add(1, Ordering::Relaxed);
    }

    fn of(&self, at: usize) -> usize {
        self.0[at].load(Ordering::Relaxed)
    }

    fn sum(&self) -> usize {
        (0..ENCODINGS.len()).map(|at| self.of(at)).sum()
    }
}

#[test]
fn an_edit_changes_the_chosen_text_and_no_other_byte_or_is_refused_and_changes_nothing() {
    let place = Place::new();
    let [generated, expected_edits, edits, guessed] = [(); 4].map(|()| Tally::default());
    place.for_all(EDITED_FILES, edit_case, |thread, case| {
        let before = case.file.bytes();
        let path = place.file(thread, &before);
        let expected = edited(&case.file, &case.old, &case.new, case.replace_all);
        let result = place.call(
            "Edit",
            json!({"file_path": path, "old_string": case.old, "new_string": case.new, "replace_all": case.replace_all}),
        );
        let after = fs::read(&path).unwrap();
        let said = result.output.as_text();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        prop_assert_eq!(mode, 0o640);
        fs::remove_file(&path).unwrap();

        let encoding = case.file.encoding();
        let wrong = |what: &str| {
            let told = format!("{what}\nbefore: {}\nafter:  {}\n{said}", before.escape_ascii(), after.escape_ascii());
            Err(TestCaseError::fail(told))
        };
        generated.add(encoding);
        if let Expected::Bytes(_) = expected {
            expected_edits.add(encoding);
        }
        match (expected, result.output.is_error()) {
            (_, true) if after != before => wrong("a refused edit changed the file"),
            (_, true) if !result.receipt.changes.is_empty() => wrong("a refused edit has a change in its receipt"),
            (Expected::Refused, true) => Ok(()),
            (Expected::Bytes(_), true) if !encoding.guessed => wrong("this edit must not be refused"),
            (Expected::Bytes(_), true) => Ok(()),
            (Expected::Bytes(bytes), false) if bytes == after => {
                edits.add(encoding);
                Ok(())
            }
            // Nothing in such a file says what its letters are. A wrong guess may make other letters of the new text, or
            // see a match where there is none, but it must not touch a byte outside it.
            (_, false) if encoding.guessed && !encoding.is_named_in(&said) => {
                guessed.add(encoding);
                let (old, _) = with_breaks_of(&case.file.text, &case.old, &case.new);
                if outside_is_kept(&before, &after, &encoding.encode(&old).unwrap_or_default()) {
                    return Ok(());
                }
                wrong("the file was taken for another encoding and a byte outside the edit changed")
            }
            (Expected::Bytes(bytes), false) => {
                wrong(&format!("the file is not what it must be\nmodel:  {}", bytes.escape_ascii()))
            }
            (Expected::Refused, false) => wrong("this edit must be refused"),
        }
    });
    let mut table = String::new();
    for (at, encoding) in ENCODINGS.iter().enumerate() {
        let [all, expected, done, other] =
            [&generated, &expected_edits, &edits, &guessed].map(|tally| tally.of(at));
        table.push_str(&format!(
            "{:<24} {all:>5} files, {expected:>5} to edit, {done:>5} edited, {other:>3} guessed otherwise\n",
            encoding.name
        ));
        // Refusing everything would keep every byte too.
        let least = if encoding.guessed { expected * 3 / 4 } else { expected };
        assert!(all >= 500 && expected >= 250 && done >= least, "{table}");
    }
    println!("{table}");
    assert!(generated.sum() >= 10_000, "only {} files were generated", generated.sum());
}

#[test]
fn a_write_over_a_file_leaves_exactly_the_new_text_in_the_encoding_the_file_was_marked_with() {
    let place = Place::new();
    let generated = Tally::default();
    place.for_all(WRITTEN_FILES, write_case, |thread, (file, content)| {
        let path = place.file(thread, &file.bytes());
        let neighbour = place.file(thread, &file.bytes());
        let result = place.call("Write", json!({"file_path": path, "content": content}));
        prop_assert!(!result.output.is_error(), "{}", result.output.as_text());
        let encoding = file.encoding();
        // Only a mark is certain; without one the new text is UTF-8, whatever the old one may have been.
        let marked = if encoding.mark.is_empty() { &ENCODINGS[0] } else { encoding };
        let expected = [marked.mark, &marked.encode(&content).unwrap()].concat();
        let after = fs::read(&path).unwrap();
        prop_assert!(after == expected, "{}: {}", after.escape_ascii(), result.output.as_text());
        prop_assert_eq!(fs::read(&neighbour).unwrap(), file.bytes(), "another file in the folder");
        prop_assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
        fs::remove_file(&path).unwrap();
        fs::remove_file(&neighbour).unwrap();
        generated.add(encoding);
        Ok(())
    });
    assert!(generated.sum() >= 2_000, "only {} files were generated", generated.sum());
}

#[test]
fn a_file_that_is_not_text_is_refused_by_edit_and_stays_as_it_is() {
    let place = Place::new();
    place.for_all(BINARY_FILES, binary, |thread, (bytes, old)| {
        let path = place.file(thread, &bytes);
        let edit =
            json!({"file_path": path, "old_string": old, "new_string": "changed", "replace_all": true});
        let result = place.call("Edit", edit);
        let after = fs::read(&path).unwrap();
        prop_assert!(after == bytes, "changed: {}", bytes.escape_ascii());
        prop_assert!(result.output.is_error(), "edited: {}", bytes.escape_ascii());
        prop_assert!(result.receipt.changes.is_empty());
        fs::remove_file(&path).unwrap();
        Ok(())
    });
}
