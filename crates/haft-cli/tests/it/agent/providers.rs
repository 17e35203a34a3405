//! Which model answers, over which wire; recordings; what is sent.

use std::process::Command;

use serde_json::{Value, json};

use super::{json_of, output, without_models};
use crate::fixture::cli::CliFixture;
use crate::fixture::scripted_model::ScriptedModel;

const KEY: &str = "sk-very-secret-0123456789";

fn writing() -> ScriptedModel {
    ScriptedModel::for_haft(vec![("Bash", json!({"command": "echo tea > a.txt"}))])
}

/// The program with a model of Anthropic's at this server.
fn anthropic(cli: &CliFixture, model: &ScriptedModel, args: &[&str]) -> Command {
    let mut command = without_models(cli, args);
    command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", model.url());
    command
}

#[test]
fn a_key_in_the_environment_chooses_the_provider_which_is_said() {
    let (cli, model) = (CliFixture::new(), writing());
    let run = output(anthropic(&cli, &model, &["-p", "Make tea."]));
    assert_eq!((run.code, run.stdout.as_str()), (0, "That is all.\n"), "{}", run.stderr);
    assert!(run.stderr.contains("because ANTHROPIC_API_KEY is set"), "{}", run.stderr);
    assert_eq!(cli.read("a.txt"), "tea\n");
    let first = &model.requests()[0];
    let bytes = first.to_string().len();
    assert!(bytes < 20_000, "the first request has {bytes} bytes");
}

#[test]
fn wires_make_the_same_calls() {
    for (provider, more) in [
        ("openai", &["--wire", "openai-responses", "--model", "m"][..]),
        ("anthropic", &["--model", "m"]),
        ("ollama", &[]),
        ("compatible", &["--wire", "anthropic", "--model", "m"]),
    ] {
        let (cli, model) = (CliFixture::new(), writing());
        let (url, json) = (model.url(), ["--output-format", "json"]);
        let flags = ["-p", "Make tea.", "--provider", provider, "--base-url", &url];
        let run = output(without_models(&cli, &[&flags, more, &json].concat()));
        let report = json_of(&run);
        assert_eq!(
            (run.code, report["result"].as_str()),
            (0, Some("That is all.")),
            "{provider}: {}",
            run.stderr
        );
        assert_eq!(report["provider"].as_str(), Some(provider));
        assert_eq!(cli.read("a.txt"), "tea\n", "{provider}");
    }
}

#[test]
fn a_local_server_is_found_and_otherwise_three_ways_are_named() {
    let (cli, model) = (CliFixture::new(), writing());
    let mut command = without_models(&cli, &["-p", "Make tea."]);
    command.env("OLLAMA_HOST", model.url());
    let run = output(command);
    assert_eq!((run.code, run.stdout.as_str()), (0, "That is all.\n"), "{}", run.stderr);
    let said = format!("tiny:1b of Ollama answers, because Ollama runs at {}", model.url());
    assert!(run.stderr.contains(&said), "{}", run.stderr);

    let nothing = output(without_models(&cli, &["-p", "Make tea."]));
    assert_eq!(nothing.code, 2, "{}", nothing.stderr);
    for way in ["ANTHROPIC_API_KEY", "ollama serve", "--base-url"] {
        assert!(nothing.stderr.contains(way), "{}", nothing.stderr);
    }
    let no_key = output(without_models(&cli, &["-p", "x", "--provider", "gemini"]));
    assert_eq!(no_key.code, 2);
    assert!(no_key.stderr.contains("GEMINI_API_KEY"), "{}", no_key.stderr);
}

#[test]
fn settings_choose_the_model_and_flags_choose_another() {
    let (cli, model) = (CliFixture::new(), writing());
    let settings = format!(
        "[model]\nprovider = \"anthropic\"\nname = \"from-settings\"\nbase_url = \"{}\"\nmax_turns = 1\n",
        model.url()
    );
    std::fs::write(cli.config(), settings).unwrap();
    let flags = ["-p", "Make tea.", "--output-format", "json"];
    let report = json_of(&output(without_models(&cli, &flags)));
    assert_eq!(
        (report["model"].as_str(), report["stop"].as_str()),
        (Some("from-settings"), Some("max_turns"))
    );
    let flags = [&flags[..], &["--model", "from-flag", "--max-turns", "9"]].concat();
    let report = json_of(&output(without_models(&cli, &flags)));
    assert_eq!((report["model"].as_str(), report["stop"].as_str()), (Some("from-flag"), Some("done")));
    // A project cannot say where conversations go.
    cli.write("haft.toml", "[model]\nbase_url = \"http://127.0.0.1:9\"\n");
    let run = output(without_models(&cli, &flags));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("model.base_url is ignored in a project's file"), "{}", run.stderr);
}

#[test]
fn a_recording_has_no_key_and_plays_without_a_provider() {
    let (cli, model) = (CliFixture::new(), writing());
    let file = cli.config().with_file_name("run.jsonl");
    let file = file.to_str().unwrap();
    let run = output(anthropic(&cli, &model, &["-p", "Make tea.", "--record", file]));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let recording = std::fs::read_to_string(file).unwrap();
    assert!(!recording.contains(KEY) && recording.contains("Make tea."), "{recording}");
    assert_eq!(recording.lines().count(), 3);
    drop(model);
    std::fs::remove_file(cli.path("a.txt")).unwrap();
    let replayed = output(without_models(&cli, &["-p", "Make tea.", "--replay", file]));
    assert_eq!((replayed.code, replayed.stdout.as_str()), (0, "That is all.\n"), "{}", replayed.stderr);
    assert_eq!(cli.read("a.txt"), "tea\n");
    cli.write("other.jsonl", "hello\n");
    let other = output(without_models(&cli, &["-p", "Hello", "--replay", "other.jsonl"]));
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("not a recording"), "{}", other.stderr);
}

#[test]
fn an_empty_list_of_tools_offers_none_and_a_list_really_filters() {
    let offered = |args: &[&str]| {
        let (cli, model) = (CliFixture::new(), ScriptedModel::for_haft(Vec::new()));
        let run = output(anthropic(&cli, &model, &[&["-p", "Hello"], args].concat()));
        assert_eq!(run.code, 0, "{}", run.stderr);
        model.offered()
    };
    assert!(offered(&[]).len() > 5);
    assert!(offered(&["--tools", ""]).is_empty());
    assert!(offered(&["--allowedTools", ""]).is_empty());
    assert_eq!(offered(&["--tools", "Read,Grep"]), ["Read", "Grep"]);
    assert!(offered(&["--allowedTools", "Bash(make *)"]).len() > 5, "a rule is no filter");
}

#[test]
fn the_projects_instructions_are_sent_and_flags_replace_the_prompt() {
    let (cli, model) = (CliFixture::new(), ScriptedModel::for_haft(Vec::new()));
    cli.write("AGENTS.md", "Always use tabs.\n");
    let system = |args: &[&str]| -> String {
        let run = output(anthropic(&cli, &model, &[&["-p", "Hello"], args].concat()));
        assert_eq!(run.code, 0, "{}", run.stderr);
        let request: Value = model.requests().pop().unwrap();
        request["system"].to_string()
    };
    let own = system(&[]);
    assert!(own.contains("Always use tabs.") && own.contains(cli.root().to_str().unwrap()), "{own}");
    let replaced = system(&["--system-prompt", "You are a poet."]);
    assert!(replaced.contains("You are a poet.") && !replaced.contains("tabs"), "{replaced}");
    let more = system(&["--append-system-prompt", "Rhyme."]);
    assert!(more.contains("Always use tabs.") && more.contains("Rhyme."), "{more}");
    assert_eq!(system(&["--system-prompt", ""]), "null");
}

#[test]
fn the_second_request_begins_as_the_first() {
    let (cli, model) = (CliFixture::new(), writing());
    assert_eq!(output(anthropic(&cli, &model, &["-p", "Make tea."])).code, 0);
    let requests = model.requests();
    assert_eq!(requests[0]["tools"], requests[1]["tools"]);
    assert_eq!(requests[0]["system"], requests[1]["system"]);
    assert_eq!(
        requests[0]["messages"][0]["content"][0]["text"],
        requests[1]["messages"][0]["content"][0]["text"]
    );
}
