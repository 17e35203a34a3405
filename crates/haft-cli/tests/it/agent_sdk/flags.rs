//! The flags that the SDKs can send.

use serde_json::json;

use super::stream::StreamHost;
use super::turn_model::{TurnModel, text};
use crate::fixture::cli::CliFixture;

#[test]
fn every_flag_of_both_sdks_is_accepted() {
    let cli = CliFixture::new();
    let folder = cli.root().to_str().unwrap().to_owned();
    let prompt = cli.path("prompt.txt");
    std::fs::write(&prompt, "Be brief.").unwrap();
    let file = format!("--system-prompt-file={}", prompt.display());
    let session = "--session-id=3f2504e0-4f89-41d3-9a0c-0305e82c3301";
    let lists: [&[&str]; 4] = [
        &[
            "--system-prompt",
            "",
            "--tools",
            "default",
            "--allowedTools",
            "Read,Bash(git log:*)",
            "--max-turns",
            "3",
            "--max-budget-usd",
            "5",
            "--disallowedTools",
            "WebSearch",
            "--task-budget",
            "9",
            "--model",
            "claude-sonnet-5-5",
            "--fallback-model",
            "claude-haiku-5-5",
            "--betas",
            "a,b",
            "--permission-prompt-tool",
            "stdio",
            "--permission-mode",
            "default",
            session,
            "--settings",
            "{}",
            "--add-dir",
            &folder,
            "--mcp-config",
            "{\"mcpServers\":{}}",
            "--include-partial-messages",
            "--include-hook-events",
            "--strict-mcp-config",
            "--session-mirror",
            "--setting-sources=user,project",
            "--plugin-dir",
            &folder,
            "--thinking",
            "adaptive",
            "--thinking-display",
            "summarized",
            "--effort",
            "high",
            "--replay-user-messages",
        ],
        &[&file, "--append-system-prompt", "More.", "--max-thinking-tokens", "2000", "--tools", ""],
        &[
            "--agent=x",
            "--debug",
            "--debug-file=/dev/null",
            "--channels=a",
            "--project-config-root=.",
            "--await-initialize",
            "--plugin-dir-no-mcp=.",
            "--no-session-persistence",
            "--managed-settings",
            "{}",
            "--permission-prompts=host",
            "--allow-dangerously-skip-permissions",
            "--thinking=disabled",
            "--setting-sources=",
            "--managed-settings-in-initialize",
            "--dangerously-skip-permissions",
        ],
        &["--resume-session-at=3f2504e0-4f89-41d3-9a0c-0305e82c3301", "--resume-drops-turn=x", "--debug=api"],
    ];
    for flags in lists {
        let model = TurnModel::start(vec![vec![text("Yes.")]]);
        let mut host = StreamHost::start(&cli, &model, flags);
        host.initialize(&json!({}));
        host.say("Go");
        let result = host.until_result().pop().unwrap();
        assert_eq!(result["result"], "Yes.", "{flags:?}: {result}");
    }
}

#[test]
fn flag_without_effect_is_one_warning_and_an_unknown_flag_ends_the_program() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("Yes.")]]);
    let mut host = StreamHost::start(&cli, &model, &["--betas", "context-1m"]);
    host.say("Go");
    host.until_result();
    let (_, code, errors) = host.end();
    assert_eq!((code, errors.matches("--betas").count()), (Some(0), 1), "{errors}");
    let host = StreamHost::start(&cli, &model, &["--no-such-flag"]);
    let (messages, code, errors) = host.end();
    assert_eq!((messages.len(), code), (0, Some(2)), "{errors}");
}

#[test]
fn session_gets_the_id_that_the_program_gives_and_is_continued_by_it() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("Yes.")]]);
    let id = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
    for flag in [format!("--session-id={id}"), format!("--resume={id}"), "--continue".to_owned()] {
        let mut host = StreamHost::start(&cli, &model, &[&flag]);
        host.say("Go");
        let result = host.until_result().pop().unwrap();
        assert_eq!(result["session_id"], id, "{flag}");
        // Two processes cannot drive one run.
        host.end();
    }
    let messages = model.requests().pop().unwrap()["messages"].as_array().unwrap().len();
    assert_eq!(messages, 5, "three messages of the user, and two answers");
}

#[test]
fn empty_list_of_tools_offers_none() {
    let cli = CliFixture::new();
    let model = TurnModel::start(vec![vec![text("Yes.")]]);
    let mut host = StreamHost::start(&cli, &model, &["--tools", ""]);
    host.say("Go");
    assert_eq!(host.until_result()[0]["tools"], json!([]));
    assert!(model.requests()[0].get("tools").is_none_or(|tools| *tools == json!([])));
}
