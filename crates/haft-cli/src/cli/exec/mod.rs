//! `haft exec`: one run in the form of `codex exec`, which Codex's SDK drives.

mod args;
mod flags;
mod item_kind;
mod items;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_agent::{AnswerSchema, RunStop, TurnReport};
use haft_compat::exec::{ExecConfig, ThreadError, ThreadEvent, ThreadUsage};
use haft_files::{read_named, write_private};
use haft_model::{ContentPart, TokenUsage};
use haft_tool::{Cancel, Secret, ToolError};

pub(super) use args::ExecArgs;
use flags::{ExecTask, run_args};
use items::ItemEvents;

use super::run::{EarlierRun, PreparedRun, ProgressLines, exit, prompt};
use super::{CommandResult, housekeeping, screen, terminal};

/// The variable with the key for OpenAI.
const KEY_VARIABLE: &str = "CODEX_API_KEY";
/// The provider whose program would work with other flags than those of this command.
const OTHER_PROGRAM: &str = "claude-cli";
/// The largest schema and the largest image.
const MAX_SCHEMA_BYTES: u64 = 1 << 20;
const MAX_IMAGE_BYTES: u64 = 20 << 20;

pub(super) fn run(args: &ExecArgs) -> CommandResult {
    let mut config = ExecConfig::default();
    for word in &args.config {
        config.set(word).map_err(|error| ToolError::invalid_arguments(format!("--config: {error}")))?;
    }
    let task = ExecTask::of(&args.words, args.last)?;
    // A model of this machine is not told the key of another.
    let is_local = args.oss || args.local_provider.is_some() || args.script.is_some();
    let key = std::env::var(KEY_VARIABLE).ok().filter(|key| !key.trim().is_empty() && !is_local);
    let mut run_args = run_args(args, &config, &task, key.is_some())?;
    run_args.set_api_key(key.map(Secret::new));
    run_args.output_schema = args.output_schema.as_deref().map(schema).transpose()?;
    let images = args.images.iter().map(|path| image(path)).collect::<Result<Vec<_>, _>>()?;
    note_ignored(args, &config);
    let Some(prompt) = prompt(&task.prompt)? else {
        return Err(ToolError::invalid_arguments(
            "there is no prompt. Give one, or pipe it to standard input.",
        ));
    };
    let earlier = EarlierRun::find(&run_args)?;
    let mut prepared = PreparedRun::new(&mut run_args, earlier.as_ref())?;
    if prepared.run.state().provider == OTHER_PROGRAM {
        return Err(ToolError::invalid_arguments(format!(
            "haft exec does not work with the provider {OTHER_PROGRAM}. Use haft -p, or set CODEX_API_KEY or another provider's key."
        )));
    }
    let cancel = Cancel::new();
    terminal::cancel_on_signal(&cancel, false)?;
    let stop = if args.json {
        run_as_events(&mut prepared, &prompt, images, args, &cancel)?
    } else {
        run_as_text(&mut prepared, &prompt, images, args, &cancel)?
    };
    housekeeping::run_if_due(prepared.runtime.ledger(), &prepared.setup.config.values.ledger);
    Ok(exit(&stop))
}

fn note_ignored(args: &ExecArgs, config: &ExecConfig) {
    let keys = config.unknown.iter().map(|key| format!("--config {key}"));
    let ignored: Vec<String> = args.ignored.given().into_iter().chain(keys).collect();
    if !ignored.is_empty() {
        screen::warnings(&[format!("these have no effect in haft exec: {}", ignored.join(", "))]);
    }
}

fn schema(path: &Path) -> Result<AnswerSchema, ToolError> {
    let value = serde_json::from_slice(&read_named(path, MAX_SCHEMA_BYTES)?);
    let invalid = |error: serde_json::Error| {
        ToolError::invalid_arguments(format!("{} is not JSON: {error}", path.display()))
    };
    AnswerSchema::new(value.map_err(invalid)?)
}

fn image(path: &Path) -> Result<ContentPart, ToolError> {
    let bytes = read_named(path, MAX_IMAGE_BYTES)?;
    let media_type = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => {
            let message = format!("{} is no PNG, JPEG, GIF or WebP image", path.display());
            return Err(ToolError::invalid_arguments(message));
        }
    };
    Ok(ContentPart::Image { media_type: media_type.to_owned(), data: STANDARD.encode(bytes) })
}

fn run_as_events(
    prepared: &mut PreparedRun,
    prompt: &str,
    images: Vec<ContentPart>,
    args: &ExecArgs,
    cancel: &Cancel,
) -> Result<RunStop, ToolError> {
    let mut events = ItemEvents::new(prepared.runtime.clone(), cancel.clone());
    events.emit(&ThreadEvent::ThreadStarted { thread_id: prepared.run.session().to_owned() });
    events.emit(&ThreadEvent::TurnStarted);
    let report = prepared.say_as(message(prompt, images), None, &mut events, cancel);
    let collected = prepared.end(&mut events, cancel);
    prepared.close_channels();
    let failed = |events: &mut ItemEvents, message: String| {
        events.emit(&ThreadEvent::TurnFailed { error: ThreadError { message } });
    };
    let report = match report.and_then(|report| collected.map(|()| report)) {
        Ok(report) => report,
        Err(error) => {
            events.finish(None);
            failed(&mut events, error.message.clone());
            return Err(error);
        }
    };
    events.finish(report.structured.as_ref());
    match report.stop.explanation() {
        None => {
            let usage = usage(&prepared.run.state().turn_totals.usage);
            events.emit(&ThreadEvent::TurnCompleted { usage });
            write_last_message(args, &report)?;
        }
        Some(explanation) => {
            // Codex's SDK shows standard error only where there was no such event.
            screen::error(&explanation);
            failed(&mut events, explanation);
        }
    }
    Ok(report.stop)
}

fn run_as_text(
    prepared: &mut PreparedRun,
    prompt: &str,
    images: Vec<ContentPart>,
    args: &ExecArgs,
    cancel: &Cancel,
) -> Result<RunStop, ToolError> {
    let mut progress = ProgressLines::new(true);
    let report = prepared.say_as(message(prompt, images), None, &mut progress, cancel);
    let collected = prepared.end(&mut progress, cancel);
    prepared.close_channels();
    let report = report?;
    collected?;
    match report.stop.explanation() {
        None => {
            screen::result(&final_text(&report));
            write_last_message(args, &report)?;
        }
        Some(explanation) => screen::error(&explanation),
    }
    screen::note(&format!("session {}", prepared.run.session()));
    Ok(report.stop)
}

/// The final answer; one that had to be JSON is nothing but that.
fn final_text(report: &TurnReport) -> String {
    match &report.structured {
        Some(value) if serde_json::from_str::<haft_tool::Value>(&report.text).is_err() => value.to_string(),
        _ => report.text.clone(),
    }
}

fn write_last_message(args: &ExecArgs, report: &TurnReport) -> Result<(), ToolError> {
    let Some(path) = &args.output_last_message else { return Ok(()) };
    write_private(path, final_text(report).as_bytes())
}

fn usage(usage: &TokenUsage) -> ThreadUsage {
    ThreadUsage {
        input_tokens: usage.context(),
        cached_input_tokens: usage.cache_read,
        cache_write_input_tokens: usage.cache_write,
        output_tokens: usage.output,
        reasoning_output_tokens: usage.reasoning,
    }
}

/// A message with a prompt and images.
fn message(prompt: &str, images: Vec<ContentPart>) -> Vec<ContentPart> {
    std::iter::once(ContentPart::text(prompt)).chain(images).collect()
}
