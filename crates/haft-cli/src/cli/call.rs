//! `haft call`: one tool call, without a model.

use std::io::IsTerminal;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use haft_runtime::{CallOptions, CallResult, Runtime};
use haft_tool::{Call, Cancel, Content, Message, Receipt, SideEffect, Value, json};

use super::args;
use super::arguments::{ArgumentTypes, TypedArguments, from_words};
use super::exit::{CliExit, code};
use super::screen::{self, BAD, FAINT, styled};
use super::setup::Setup;
use super::{CommandResult, housekeeping, terminal};
use haft::formats::{self, ProviderFormat};

/// How long to wait for the server that has the tool, where its schema says what the typed words mean.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) fn run(args: args::CallArgs) -> CommandResult {
    let typed = TypedArguments::read(args.arguments)?;
    let setup = Setup::load_for_calls(&args.at.workspace, &args.rules)?;
    let entries = setup.entries(&args.servers)?;
    let choice = setup.tool_selection(&args.at.dialect)?;
    let named = choice.registry()?.get(&args.tool).map(Arc::clone);
    let (builder, servers) =
        setup.add_servers(entries, &args.at.dialect, choice.into_builder(setup.builder()))?;
    let builder = setup.rules(&args.rules, setup.scope(&args.at.scope, builder)?);
    let mut builder = args.session.apply(builder);
    let named_tool = named.as_ref().map_or(args.tool.as_str(), |tool| tool.name());
    if named.is_some() || !servers.is_empty() {
        builder = builder.allow(named_tool, "named on the command line");
    }
    let builder = builder.asker(terminal::asker(&setup)).no_tasks(
        "`haft call` exits after one call, so it cannot run a command in the background. Run it in the foreground, or use \
         `haft sandbox --detach`",
    );
    // The process exits after the call; the kernel frees everything faster.
    let runtime = ManuallyDrop::new(builder.build()?);
    screen::warnings(runtime.warnings());

    let arguments = match typed {
        TypedArguments::Json(arguments) => arguments,
        TypedArguments::Words(words) => {
            let own = named.as_deref().map(ArgumentTypes::of);
            from_words(&words, &own.unwrap_or_else(|| server_tool(&runtime, &args.tool)))?
        }
    };

    let cancel = Cancel::new();
    let call = Call::new("call_1", &args.tool, arguments);
    // A tool that waits for the user has the terminal to itself.
    let blocks = named.is_some_and(|tool| tool.side_effect() == SideEffect::Blocking);
    let status_line =
        if blocks { terminal::StatusLine::silent() } else { terminal::StatusLine::on(&args.tool) };
    let options =
        CallOptions { cancel: cancel.clone(), watch: status_line.watch(), ..CallOptions::default() };
    let result = terminal::wait(&cancel, runtime.run(call, options))?;
    drop(status_line);
    servers.close();
    runtime.clear_session_directories();
    match args.format {
        Some(ProviderFormat::Haft) => screen::result(&as_json(&result).to_string()),
        Some(format) => {
            let Receipt { call_id, tool, .. } = &result.receipt;
            screen::result(&formats::result(format, call_id, tool, &result.output).to_string());
        }
        None if args.json => screen::result(&as_json(&result).to_string()),
        None => show(&result),
    }
    let lost = setup.host.close();
    for lost in &lost {
        let Message { channel, chat_id, .. } = &lost.message;
        screen::error(&format!(
            "the message to {channel} {chat_id} was not delivered: {}",
            lost.error.message
        ));
    }
    housekeeping::run_if_due(runtime.ledger(), &setup.config.values.ledger);
    let done = if lost.is_empty() { CliExit::Done } else { CliExit::Failed };
    Ok(result.output.error_kind.map_or(done, code))
}

/// What is known of a tool of a server, which is connected for its schema.
fn server_tool(runtime: &Runtime, name: &str) -> ArgumentTypes {
    let known = || ArgumentTypes::in_runtime(name, runtime);
    let found = known().or_else(|| {
        runtime.connect_for_tool(name, CONNECT_TIMEOUT);
        known()
    });
    found.unwrap_or_else(|| ArgumentTypes::unknown(name))
}

fn show(result: &CallResult) {
    screen::result(&result.output.as_text());
    let receipt = &result.receipt;
    if let Some(kind) = result.output.error_kind {
        // One that could not be recorded has no number.
        let call = if receipt.id == 0 { String::new() } else { format!(" (call {})", receipt.id) };
        screen::note(&format!("{}: {kind}{call}", styled(BAD, &screen::escape(&receipt.tool))));
    } else if !receipt.changes.is_empty() && std::io::stderr().is_terminal() {
        screen::note(&styled(FAINT, &format!("call {0}; to undo it: haft undo {0}", receipt.id)));
    }
}

/// The result for programs.
pub(super) fn as_json(result: &CallResult) -> Value {
    let output = &result.output;
    let content = if output.is_text() {
        Value::String(output.as_text())
    } else {
        let block = |piece: &Content| match piece {
            Content::Text { text } => json!({"type": "text", "text": text.head}),
            Content::Image { media_type, data } => {
                json!({"type": "image", "mimeType": media_type, "data": data})
            }
            Content::Block { block, .. } => block.clone(),
        };
        Value::Array(output.content.iter().map(block).collect())
    };
    let mut all = json!({"content": content, "is_error": output.is_error()});
    if let Some(kind) = output.error_kind {
        all["error_kind"] = json!(kind);
    }
    if let Some(structured) = &output.structured {
        all["structured"] = structured.clone();
    }
    all["receipt"] = json!(result.receipt);
    all
}
