//! `haft -p` and `haft run`: the agent loop through the program.

mod claude_cli;
mod continuing;
mod hooks;
mod killed;
mod model_tools;
mod providers;
mod runs;
mod session;
mod session_keys;
mod session_text;
mod skills;
mod subagents;
mod wire_loops;

use std::process::Command;

use crate::fixture::cli::{CliFixture, RunOutput};
use serde_json::{Value, json};

/// Variables that would choose a model.
const MODEL_VARIABLES: [&str; 14] = [
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENROUTER_API_KEY",
    "OPENROUTER_BASE_URL",
    "LITELLM_API_KEY",
    "LITELLM_BASE_URL",
    "LITELLM_PROXY_URL",
    "HAFT_API_KEY",
    "HAFT_BASE_URL",
];

/// The program, in an environment that names no model.
pub(crate) fn without_models(cli: &CliFixture, args: &[&str]) -> Command {
    let mut command = cli.command(args);
    for name in MODEL_VARIABLES {
        command.env_remove(name);
    }
    // Nothing listens at the port that is never given out.
    command.env("OLLAMA_HOST", "127.0.0.1:1");
    command
}

fn output(mut command: Command) -> RunOutput {
    command.output().unwrap().into()
}

/// Writes a script and runs the program with it.
fn scripted(cli: &CliFixture, script: &[Value], args: &[&str]) -> RunOutput {
    output(scripted_command(cli, script, args))
}

fn scripted_command(cli: &CliFixture, script: &[Value], args: &[&str]) -> Command {
    let lines: String = script.iter().map(|line| format!("{line}\n")).collect();
    let path = cli.config().with_file_name("script.jsonl");
    std::fs::write(&path, lines).unwrap();
    let flags = ["--provider", "script", "--script", path.to_str().unwrap()];
    without_models(cli, &[args, &flags].concat())
}

fn bash(command: &str) -> Value {
    json!({"calls": [{"name": "Bash", "arguments": {"command": command}}]})
}

fn says(text: &str) -> Value {
    json!({ "text": text })
}

fn json_of(output: &RunOutput) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}{}", output.stdout, output.stderr))
}
