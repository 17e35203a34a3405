//! The loop in each provider's format: how calls come, how results go back, when it ends, and which model is asked.

use serde_json::{Value, json};

use super::{json_of, output, says, scripted, without_models};
use crate::fixture::cli::{CliFixture, RunOutput};
use crate::fixture::scripted_model::ScriptedModel;

/// The providers of the source documents that are reached over HTTP.
const PROVIDERS: [&str; 5] = ["openai", "anthropic", "ollama", "openrouter", "gemini"];

/// A run with a model that makes one call.
struct LoopRun {
    cli: CliFixture,
    report: Value,
    /// What the model was sent.
    requests: Vec<Value>,
}

impl LoopRun {
    fn new(provider: &str, more: &[&str]) -> Self {
        let cli = CliFixture::new();
        let command = json!({"command": "echo tea > a.txt; echo poured"});
        let model = ScriptedModel::for_haft(vec![("Bash", command)]);
        let run = ask(&cli, &model, provider, more);
        Self { cli, report: json_of(&run), requests: model.requests() }
    }

    /// The messages of the second request, behind the one that has the prompt.
    fn exchanged(&self, messages: &str) -> [Value; 2] {
        let all = self.requests[1][messages].as_array().unwrap();
        let from = all.iter().position(|message| message.to_string().contains("Make tea.")).unwrap() + 1;
        [all[from].clone(), all[from + 1].clone()]
    }
}

fn ask(cli: &CliFixture, model: &ScriptedModel, provider: &str, more: &[&str]) -> RunOutput {
    let url = model.url();
    let flags = ["-p", "Make tea.", "--provider", provider, "--base-url", &url, "--output-format", "json"];
    output(without_models(cli, &[&flags[..], &["--model", "m"], more].concat()))
}

#[test]
fn all_five_providers_have_a_loop_that_makes_calls() {
    for provider in PROVIDERS {
        let run = LoopRun::new(provider, &[]);
        assert_eq!(run.cli.read("a.txt"), "tea\n", "{provider}");
        assert_eq!(run.requests.len(), 2, "{provider}");
        // The output of the tool is a part of what the model is sent next.
        let sent = run.requests.iter().map(|request| request.to_string().contains("poured\\n"));
        assert_eq!(sent.collect::<Vec<_>>(), [false, true], "{provider}: {}", run.requests[1]);
    }
}

#[test]
fn the_model_decides_whether_it_answers_or_calls() {
    for provider in PROVIDERS {
        let (cli, model) = (CliFixture::new(), ScriptedModel::for_haft(Vec::new()));
        let report = json_of(&ask(&cli, &model, provider, &[]));
        assert_eq!((report["num_turns"].as_u64(), model.requests().len()), (Some(1), 1), "{provider}");
        assert!(!model.offered().is_empty(), "{provider}");
        assert_eq!(LoopRun::new(provider, &[]).report["num_turns"], 2, "{provider}");
    }
}

#[test]
fn the_loop_goes_on_until_a_plain_answer_or_the_limit() {
    for provider in PROVIDERS {
        let whole = LoopRun::new(provider, &[]).report;
        assert_eq!((&whole["stop"], &whole["result"]), (&json!("done"), &json!("That is all.")));
        let limited = LoopRun::new(provider, &["--max-turns", "1"]);
        assert_eq!(limited.report["stop"], "max_turns", "{provider}");
        assert_eq!(limited.requests.len(), 1, "{provider}");
        assert_eq!(limited.cli.read("a.txt"), "tea\n", "the call of the last answer is made");
    }
}

#[test]
fn a_reply_has_text_provider_tokens_time_and_model_for_all_five_providers() {
    for provider in PROVIDERS {
        let report = LoopRun::new(provider, &[]).report;
        assert_eq!(report["result"], "That is all.", "{provider}");
        assert_eq!((&report["provider"], &report["model"]), (&json!(provider), &json!("m")));
        let usage = &report["usage"];
        assert_eq!((usage["input"].as_u64(), usage["output"].as_u64()), (Some(2), Some(2)), "{provider}");
        assert!(report["duration_ms"].is_u64(), "{provider}");
    }
}

/// What `OpenAI`'s Chat Completions and their relatives exchange.
fn check_chat(run: &LoopRun) {
    let [call, result] = run.exchanged("messages");
    let made = &call["tool_calls"][0];
    assert_eq!(
        (&call["role"], &made["id"], &made["type"]),
        (&json!("assistant"), &json!("call_0"), &json!("function"))
    );
    assert_eq!(made["function"]["name"], "Bash");
    let arguments: Value = serde_json::from_str(made["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments["command"], "echo tea > a.txt; echo poured");
    assert_eq!((&result["role"], &result["tool_call_id"]), (&json!("tool"), &json!("call_0")));
    assert!(result["content"].as_str().unwrap().contains("poured"), "{result}");
}

#[test]
fn openai_calls_are_tool_calls_with_id_name_and_arguments_in_a_string() {
    check_chat(&LoopRun::new("openai", &["--wire", "openai-chat"]));
}

#[test]
fn openrouter_follows_the_loop_of_openai() {
    check_chat(&LoopRun::new("openrouter", &[]));
}

#[test]
fn ollama_needs_no_ids() {
    let run = LoopRun::new("ollama", &[]);
    let [call, result] = run.exchanged("messages");
    let made = &call["tool_calls"][0];
    assert_eq!(made["function"]["name"], "Bash");
    assert!(made["function"]["arguments"].is_object(), "{made}");
    assert_eq!(result["role"], "tool");
    assert!(result["content"].as_str().unwrap().contains("poured"), "{result}");
    for value in [made, &result] {
        assert!(value.get("id").is_none() && value.get("tool_call_id").is_none(), "{value}");
    }
}

#[test]
fn anthropic_calls_are_tool_use_blocks_and_results_go_back_in_a_user_message() {
    let run = LoopRun::new("anthropic", &[]);
    let [call, results] = run.exchanged("messages");
    let block = &call["content"][0];
    assert_eq!(
        (&block["type"], &block["id"], &block["name"]),
        (&json!("tool_use"), &json!("toolu_0"), &json!("Bash"))
    );
    assert_eq!(block["input"]["command"], "echo tea > a.txt; echo poured");
    assert_eq!((&call["role"], &results["role"]), (&json!("assistant"), &json!("user")));
    let result = &results["content"][0];
    assert_eq!((&result["type"], &result["tool_use_id"]), (&json!("tool_result"), &json!("toolu_0")));
    assert!(result["content"].to_string().contains("poured"), "{result}");
}

#[test]
fn anthropics_loop_ends_with_end_turn_and_goes_on_with_tool_use() {
    let run = LoopRun::new("anthropic", &[]);
    // The server says tool_use with the first answer and end_turn with the second.
    assert_eq!((run.requests.len(), &run.report["stop"]), (2, &json!("done")));
    assert_eq!(run.report["is_error"], false);
}

#[test]
fn gemini_calls_are_function_calls_and_its_assistant_is_the_model() {
    let run = LoopRun::new("gemini", &[]);
    let [call, result] = run.exchanged("contents");
    assert_eq!((&call["role"], &result["role"]), (&json!("model"), &json!("user")));
    let made = &call["parts"][0]["functionCall"];
    assert_eq!(
        (&made["name"], &made["args"]["command"]),
        (&json!("Bash"), &json!("echo tea > a.txt; echo poured"))
    );
    let answer = &result["parts"][0]["functionResponse"];
    assert_eq!(answer["name"], "Bash");
    assert!(answer["response"].to_string().contains("poured"), "{answer}");
    let roles = run.requests[1]["contents"].as_array().unwrap().iter();
    assert!(roles.clone().all(|content| content["role"] == "user" || content["role"] == "model"));
}

#[test]
fn clawfts_limit_is_twenty_rounds_and_can_be_set() {
    let cli = CliFixture::new();
    let step = json!({"calls": [{"name": "exec_shell", "arguments": {"command": "echo >> n.txt"}}]});
    let mut script = vec![step; 25];
    let rounds = |script: &[Value], more: &[&str]| {
        let _ = std::fs::remove_file(cli.path("n.txt"));
        let flags = ["-p", "Go.", "--dialect", "clawft", "--output-format", "json"];
        let report = json_of(&scripted(&cli, script, &[&flags[..], more].concat()));
        let reason = report["stop"].as_str().unwrap().to_owned();
        (report["num_turns"].as_u64().unwrap(), reason, cli.read("n.txt").lines().count())
    };
    assert_eq!(rounds(&script, &[]), (20, "max_turns".to_owned(), 20));
    assert_eq!(rounds(&script, &["--max-turns", "3"]), (3, "max_turns".to_owned(), 3));
    std::fs::write(cli.config(), "[model]\nmax_turns = 24\n").unwrap();
    assert_eq!(rounds(&script, &[]), (24, "max_turns".to_owned(), 24));
    // An answer without calls ends it earlier.
    script[5] = says("Enough.");
    assert_eq!(rounds(&script, &[]), (6, "done".to_owned(), 5));
}

/// The models that were asked, with whether tools were offered.
fn asked(model: &ScriptedModel) -> Vec<(String, bool)> {
    let name = |request: &Value| (request["model"].as_str().unwrap().to_owned(), !request["tools"].is_null());
    model.requests().iter().map(name).collect()
}

#[test]
fn a_provider_has_a_fast_and_a_complex_model_between_which_prompts_are_routed() {
    let run = |fast: &str, more: &[&str]| {
        let (cli, model) = (CliFixture::new(), ScriptedModel::for_haft(Vec::new()));
        let run = ask(&cli, &model, "anthropic", &[&["--fast-model", fast], more].concat());
        (asked(&model), json_of(&run)["model"].as_str().unwrap().to_owned(), run.stderr)
    };
    let of = |name: &str, tools: bool| (name.to_owned(), tools);
    // Off unless it is asked for.
    assert_eq!(run("judge-simple", &[]).0, [of("m", true)]);
    let (asked, answered, said) = run("judge-simple", &["--route"]);
    assert_eq!(
        (asked, answered.as_str()),
        (vec![of("judge-simple", false), of("judge-simple", true)], "judge-simple")
    );
    assert!(said.contains("judge-simple answers"), "{said}");
    let (asked, answered, _) = run("judge-other", &["--route"]);
    assert_eq!((asked, answered.as_str()), (vec![of("judge-other", false), of("m", true)], "m"));
}

#[test]
fn http_providers_have_one_model_for_both_unless_another_is_named() {
    for provider in ["openai", "anthropic", "ollama", "openrouter"] {
        let (cli, model) = (CliFixture::new(), ScriptedModel::for_haft(Vec::new()));
        let run = ask(&cli, &model, provider, &["--route"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(asked(&model), [("m".to_owned(), true)], "{provider}: nothing is judged");
    }
}

#[test]
fn a_request_can_name_another_model() {
    let (cli, model) = (CliFixture::new(), ScriptedModel::for_haft(Vec::new()));
    assert_eq!(ask(&cli, &model, "anthropic", &[]).code, 0);
    for (flags, expected) in [(&["--model", "other"][..], "other"), (&[], "other")] {
        let all = [&["-p", "More.", "--continue"][..], flags].concat();
        let run = output(without_models(&cli, &all));
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(asked(&model).last().unwrap().0, expected);
    }
}
