//! The properties that Loom's document asks tests to hold, for any text.

use haft::{Value, json};
use proptest::prelude::*;

use crate::fixture::runtime::RuntimeFixture;
use crate::loom::loom;

const CASES: u32 = 48;

/// One runtime for all cases of a property.
struct Bench {
    tokio: tokio::runtime::Runtime,
    fixture: RuntimeFixture,
}

impl Bench {
    fn new() -> Self {
        Self { tokio: tokio::runtime::Runtime::new().unwrap(), fixture: loom() }
    }

    fn value(&self, tool: &str, arguments: Value) -> Value {
        self.tokio.block_on(self.fixture.value(tool, arguments))
    }

    fn edit(&self, old: &str, new: &str) -> Value {
        self.value("edit_file", json!({"path": "f", "edits": [{"old_str": old, "new_str": new}]}))
    }

    fn contents(&self) -> String {
        self.value("read_file", json!({"path": "f"}))["contents"].as_str().unwrap().to_owned()
    }

    fn holds<S: Strategy>(&self, cases: u32, strategy: &S, property: impl Fn(&Self, S::Value)) {
        let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        let mut runner = proptest::test_runner::TestRunner::new(config);
        let checked = runner.run(strategy, |value| {
            let _ = std::fs::remove_file(self.fixture.path("f"));
            property(self, value);
            Ok(())
        });
        assert!(checked.is_ok(), "{}", checked.unwrap_err());
    }
}

/// Text without carriage returns, whose line ends an edit takes from its file.
fn words() -> impl Strategy<Value = String> {
    "[a-zäö日 \n]{0,80}"
}

#[test]
fn what_was_written_is_read_back() {
    Bench::new().holds(CASES, &words(), |bench, text| {
        bench.edit("", &text);
        assert_eq!(bench.contents(), text);
    });
}

#[test]
fn an_edit_is_taken_back_by_its_reverse() {
    let parts = (words(), "[A-Z]{1,12}", "[0-9]{1,12}", words());
    Bench::new().holds(CASES, &parts, |bench, (before, old, new, after)| {
        let text = format!("{before}{old}{after}");
        bench.fixture.file("f", &text);
        bench.edit(&old, &new);
        assert_eq!(bench.contents(), format!("{before}{new}{after}"));
        bench.edit(&new, &old);
        assert_eq!(bench.contents(), text);
    });
}

#[test]
fn the_byte_counts_are_those_of_the_file() {
    Bench::new().holds(
        CASES,
        &(words(), "[A-Z]{1,9}", words(), words()),
        |bench, (before, old, new, after)| {
            let text = format!("{before}{old}{after}");
            bench.fixture.file("f", &text);
            let done = bench.edit(&old, &new);
            assert_eq!(done["original_bytes"], text.len());
            assert_eq!(done["new_bytes"], text.len() - old.len() + new.len());
            assert_eq!(done["new_bytes"], bench.contents().len());
        },
    );
}

#[test]
fn an_edit_to_the_same_text_changes_nothing() {
    Bench::new().holds(CASES, &(words(), "[A-Z]{1,9}", words()), |bench, (before, same, after)| {
        let text = format!("{before}{same}{after}");
        bench.fixture.file("f", &text);
        let done = bench.edit(&same, &same);
        assert_eq!((&done["original_bytes"], &done["edits_applied"]), (&done["new_bytes"], &json!(1)));
        assert_eq!(bench.contents(), text);
    });
}

#[test]
fn every_exit_code_from_0_to_127_comes_through() {
    let bench = Bench::new();
    for code in 0..=127 {
        assert_eq!(bench.value("bash", json!({"command": format!("exit {code}")}))["exit_code"], code);
    }
}

#[test]
fn any_number_of_seconds_is_brought_into_range() {
    Bench::new().holds(12, &(-1_000_000_i64..1_000_000), |bench, seconds| {
        let done = bench.value("bash", json!({"command": "echo x", "timeout_secs": seconds}));
        assert_eq!(done["timed_out"], false);
    });
}

#[test]
fn any_number_of_bytes_is_brought_into_range() {
    Bench::new().holds(CASES, &(words(), any::<i64>()), |bench, (text, most)| {
        bench.fixture.file("f", &text);
        let read = bench.value("read_file", json!({"path": "f", "max_bytes": most}));
        let contents = read["contents"].as_str().unwrap();
        let room = usize::try_from(most).unwrap_or_default();
        assert!(text.starts_with(contents) && contents.len() <= room);
        assert_eq!(read["truncated"], contents.len() < text.len());
    });
}
