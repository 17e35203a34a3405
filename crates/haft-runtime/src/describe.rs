//! Describes calls to people: one line for the target of a call and one for an effect.

use haft_policy::preset_of_host;
use haft_tool::{Effect, Receipt};

/// The target of the call, in one line.
pub fn about(receipt: &Receipt) -> String {
    let target = match receipt.effects.first() {
        Some(Effect::Read { path } | Effect::Write { path }) => {
            let short = path.strip_prefix(&receipt.workspace).unwrap_or(path);
            if short.as_os_str().is_empty() { ".".to_owned() } else { short.display().to_string() }
        }
        Some(Effect::Run { command }) => command.replace('\n', " ⏎ "),
        Some(Effect::Reach { host }) => host.clone(),
        Some(Effect::Send { channel }) => channel.clone(),
        Some(Effect::Spawn { agent }) => agent.clone(),
        Some(Effect::Serve { server, .. }) => server.clone(),
        Some(Effect::Configure { setting, .. }) => setting.clone(),
        Some(Effect::Inspect { what }) => what.clone(),
        Some(Effect::StopTask { task }) => task.clone(),
        Some(Effect::Undo { .. } | Effect::Note { .. } | Effect::Ask | Effect::Unsandboxed) | None => {
            String::new()
        }
    };
    let undone = &receipt.undoes;
    let what = receipt.input.get("pattern").and_then(|pattern| pattern.as_str());
    match (what, undone.as_slice()) {
        (Some(pattern), _) => format!("{pattern} in {target}"),
        (None, []) => target,
        (None, undone) => {
            let partly = if receipt.undoes_partly { ", partly" } else { "" };
            format!("of {}{partly}", undone.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
    }
}

/// An effect on one line.
pub fn effect_line(effect: &Effect) -> String {
    match effect {
        Effect::Read { path } => format!("reads {}", path.display()),
        Effect::Write { path } => format!("writes {}", path.display()),
        Effect::Run { command } => format!("runs {command}"),
        Effect::Reach { host } => match preset_of_host(host) {
            Some(preset) => format!("reaches {host} (network preset {preset})"),
            None => format!("reaches {host}"),
        },
        Effect::Inspect { what } => format!("reads {what}"),
        Effect::Send { channel } => format!("sends a message by {channel}"),
        Effect::Spawn { agent } => format!("starts the agent {agent}"),
        Effect::Serve { server, .. } => format!("calls the server {server}"),
        Effect::Ask => "asks the user".to_owned(),
        Effect::Note { name } => format!("stores {name} in the session"),
        Effect::StopTask { task } => format!("ends the task {task}"),
        Effect::Configure { setting, .. } => format!("changes the setting {setting}"),
        Effect::Undo { call, .. } => format!("undoes call {call}"),
        Effect::Unsandboxed => "runs without the sandbox".to_owned(),
    }
}
