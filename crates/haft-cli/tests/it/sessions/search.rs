//! Searching sessions.

use serde_json::json;

use super::{json_lines, run, text};
use crate::fixture::cli::CliFixture;

#[test]
fn prompts_answers_arguments_and_results_are_found_newest_first() {
    let cli = CliFixture::new();
    let first = run(&cli, "Where is the KETTLE?", "echo kettle-$((40+2))", "The kettle is here.");
    let second = run(&cli, "Thanks.", "true", "A kettle is a pot.");
    let found = json_lines(&cli.haft(&["sessions", "search", "kettle", "--json"]));
    let places: Vec<(&str, &str)> =
        found.iter().map(|hit| (text(&hit["session"]), text(&hit["kind"]))).collect();
    let of_first = ["assistant", "result", "call", "user"].map(|kind| (first.as_str(), kind));
    assert_eq!(places[0], (second.as_str(), "assistant"));
    assert_eq!(places[1..], of_first);
    let result = &found[2];
    assert!(text(&result["snippet"]).contains("kettle-42"), "{result}");
    assert_eq!((text(&result["tool"]), result["receipt"].is_i64()), ("Bash", true));
    // The position leads to the event in the export.
    let exported = json_lines(&cli.haft(&["sessions", "export", &first, "--format", "jsonl"]));
    let entry = exported.iter().find(|entry| entry["position"] == found[4]["position"]).unwrap();
    assert_eq!((text(&entry["type"]), text(&entry["text"])), ("user", "Where is the KETTLE?"));

    let shown = cli.haft(&["sessions", "search", "kettle", "-n", "1"]);
    assert_eq!(shown.stdout.lines().count(), 1);
    assert!(shown.stdout.contains("A kettle is a pot."), "{}", shown.stdout);
    // Names of fields do not count.
    assert!(json_lines(&cli.haft(&["sessions", "search", "call_id", "--json"])).is_empty());
    assert_eq!(cli.haft(&["sessions", "search", " "]).code, 2);
}

#[test]
fn calls_without_a_run_are_found_and_other_workspaces_only_if_asked_for() {
    let cli = CliFixture::new();
    cli.call("Bash", &json!({"command": "echo \"a \\\"quoted\\\" needle\""}));
    let found = json_lines(&cli.haft(&["sessions", "search", "\"quoted\" Needle", "--json"]));
    let kinds: Vec<&str> = found.iter().map(|hit| text(&hit["kind"])).collect();
    assert_eq!(kinds, ["result"], "the argument has backslashes between: {found:?}");
    let elsewhere = tempfile::tempdir().unwrap();
    let search = |more: &[&str]| {
        let mut command = cli.command(&[&["sessions", "search", "needle", "--json"], more].concat());
        json_lines(&command.current_dir(elsewhere.path()).output().unwrap().into()).len()
    };
    assert_eq!((search(&[]), search(&["--all"])), (0, 2));
}
