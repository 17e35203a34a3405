//! A directory of a hundred thousand entries, listed fast and small. Alone here, because a process that others share counts
//! their memory too.

use crate::fixture::cli::CliFixture;
use haft::{Value, json};

/// Lists a directory and gives the value, its text's length and the peak memory in KiB.
fn listed(cli: &CliFixture, dialect: &str, tool: &str, arguments: &str) -> (Value, usize, i64) {
    let (ran, peak) = cli.peak(&["call", "--dialect", dialect, tool, arguments]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    (serde_json::from_str(&ran.stdout).unwrap(), ran.stdout.trim_end().len(), peak)
}

#[test]
fn a_directory_of_100000_entries_is_listed_in_bounded_memory_and_output() {
    let cli = CliFixture::new();
    for folder in ["few", "many"] {
        std::fs::create_dir(cli.path(folder)).unwrap();
    }
    for n in 0..100_000 {
        std::fs::File::create(cli.path(&format!("many/{n:06}"))).unwrap();
    }
    let (_, _, least) = listed(&cli, "clawft", "list_directory", r#"{"path": "few"}"#);

    let (value, length, peak) = listed(&cli, "clawft", "list_directory", r#"{"path": "many"}"#);
    let entries = value["entries"].as_array().unwrap();
    assert_eq!(entries[0], json!({"name": "000000", "is_dir": false, "size": 0}));
    assert_eq!(entries.last().unwrap(), &json!({"_truncated": true, "original_count": 100_000}));
    assert!(length <= 65_536 && entries.len() > 1_000, "{length} {}", entries.len());
    assert!(peak < least + (12 << 10), "{peak} KiB, {least} KiB without");

    let (value, _, peak) = listed(&cli, "loom", "list_files", r#"{"root": "many"}"#);
    assert_eq!(value["entries"].as_array().unwrap().len(), 1_000);
    assert!(peak < least + (12 << 10), "{peak} KiB, {least} KiB without");
}
