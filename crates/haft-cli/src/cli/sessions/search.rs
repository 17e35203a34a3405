//! `haft sessions search`: what users, models and tools said.

use clap::Args;
use haft_agent::RunEvent;
use haft_compat::transcripts::{EntryBody, Transcript, TranscriptSource};
use haft_files::real_named;
use haft_ledger::{EventQuery, Ledger, ReceiptFilter, ReceiptQuery};
use haft_tool::ToolError;
use serde::Serialize;

use super::super::CommandResult;
use super::super::args::WorkspaceArgs;
use super::super::exit::CliExit;
use super::super::local_time::local_time;
use super::super::screen::{self, FAINT, NAME, styled};
use super::super::view::ViewArgs;
use super::foreign::{ForeignAgent, ForeignFiles};
use super::ledger_transcript::{bodies, call_bodies};
use super::matching::TextMatcher;

/// Calls that are looked at together.
const RECEIPT_COUNT: usize = 200;

// No doc comment, because clap would show it instead of the command's own help.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  haft sessions search 'connection refused'\n  haft sessions search --all --json TODO\n  \
                        haft sessions search --from claude 'release notes'"
)]
pub(super) struct SearchArgs {
    /// What to search for; case does not matter.
    #[arg(value_name = "TEXT")]
    text: String,
    /// Number of places to list.
    #[arg(short = 'n', long, default_value_t = 20, value_parser = super::super::paths::list_length)]
    limit: usize,
    /// Search the sessions of every workspace.
    #[arg(long)]
    all: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
    /// Search the transcripts of another agent instead.
    #[arg(long, value_enum, value_name = "AGENT")]
    from: Option<ForeignAgent>,
    #[command(flatten)]
    view: ViewArgs,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

/// A place where the text is.
#[derive(Debug, Serialize)]
struct FoundPlace {
    session: String,
    from: &'static str,
    /// The number of the event, the call or the line.
    position: u64,
    /// In milliseconds since 1970.
    at: Option<u64>,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<i64>,
    snippet: String,
}

pub(super) fn run(args: &SearchArgs) -> CommandResult {
    args.view.set_colors();
    let matcher = TextMatcher::new(&args.text)?;
    let mut found = match args.from {
        Some(agent) => in_files(args, agent, &matcher)?,
        None => in_ledger(args, &matcher)?,
    };
    found.sort_by_key(|place| std::cmp::Reverse((place.at, place.position)));
    found.truncate(args.limit);
    if args.json {
        for place in &found {
            screen::result(&serde_json::to_string(place)?);
        }
        return Ok(CliExit::Done);
    }
    if found.is_empty() {
        let where_ = if args.all {
            "any workspace"
        } else {
            "the sessions of this workspace (--all searches every one)"
        };
        screen::note(&format!("{:?} was not found in {where_}", args.text));
    }
    args.view.show(&found.iter().map(line).collect::<String>());
    Ok(CliExit::Done)
}

fn line(place: &FoundPlace) -> String {
    let at = place.at.map(local_time).unwrap_or_default();
    let what = match &place.tool {
        Some(tool) => format!("{} {}", place.kind, screen::escape(tool)),
        None => place.kind.to_owned(),
    };
    let place_text = format!("{}:{}", screen::escape(&place.session), place.position);
    format!(
        "{place_text}  {}  {}  {}\n",
        styled(FAINT, &at),
        styled(NAME, &what),
        screen::escape(&place.snippet)
    )
}

/// The words of an entry around the text.
fn snippet_of(body: &EntryBody, matcher: &TextMatcher) -> Option<String> {
    let mut snippet = None;
    body.any_text(&mut |text| {
        snippet = matcher.snippet(text);
        snippet.is_some()
    });
    snippet
}

fn receipt_of(body: &EntryBody) -> Option<i64> {
    match body {
        EntryBody::Result { receipt, .. } => *receipt,
        _ => None,
    }
}

fn tool_of(body: &EntryBody) -> Option<String> {
    match body {
        EntryBody::Call { name, .. } => Some(name.clone()),
        _ => None,
    }
}

fn in_ledger(args: &SearchArgs, matcher: &TextMatcher) -> Result<Vec<FoundPlace>, ToolError> {
    let ledger = Ledger::open(Ledger::home_from_env()?)?;
    let folder = args.workspace.folder()?;
    let folder = real_named(&folder).unwrap_or(folder);
    let workspace = (!args.all).then_some(folder);
    let query = EventQuery { workspace: workspace.clone(), session: None, text: args.text.clone() };
    let mut found = Vec::new();
    ledger.search_events(&query, &mut |session, stored| {
        let result_name = match serde_json::from_value::<RunEvent>(stored.body) {
            Ok(event) => {
                let name = match &event {
                    RunEvent::CallFinished { result, .. } => Some(result.name.clone()),
                    _ => None,
                };
                (bodies(&event), name)
            }
            // What is no event of a run says nothing.
            Err(_) => return true,
        };
        let (bodies, name) = result_name;
        for body in &bodies {
            if let Some(snippet) = snippet_of(body, matcher) {
                found.push(FoundPlace {
                    session: session.to_owned(),
                    from: TranscriptSource::Haft.name(),
                    position: stored.seq,
                    at: Some(stored.at),
                    kind: body.kind(),
                    tool: tool_of(body).or_else(|| name.clone()),
                    receipt: receipt_of(body),
                    snippet,
                });
            }
        }
        found.len() < args.limit
    })?;
    let mut query = ReceiptQuery { workspace, limit: RECEIPT_COUNT, ..ReceiptQuery::default() };
    let filter = ReceiptFilter { text: Some(args.text.clone()), ..ReceiptFilter::default() };
    let mut calls = Vec::new();
    loop {
        let receipts = ledger.search(&query, &filter)?;
        let is_last = receipts.len() < RECEIPT_COUNT;
        for receipt in receipts.into_iter().map(|summary| summary.receipt) {
            query.before = Some(receipt.id);
            // The calls of a run are found as its events.
            if calls.len() < args.limit && ledger.last_event_at(&receipt.session)?.is_none() {
                calls.extend(found_call(&ledger, &receipt, matcher)?);
            }
        }
        if is_last || calls.len() >= args.limit {
            found.append(&mut calls);
            return Ok(found);
        }
    }
}

fn found_call(
    ledger: &Ledger,
    receipt: &haft_tool::Receipt,
    matcher: &TextMatcher,
) -> Result<Vec<FoundPlace>, ToolError> {
    let mut found = Vec::new();
    for body in call_bodies(receipt, ledger.result(receipt.id)?) {
        if let Some(snippet) = snippet_of(&body, matcher) {
            found.push(FoundPlace {
                session: receipt.session.clone(),
                from: TranscriptSource::Haft.name(),
                position: u64::try_from(receipt.id).unwrap_or(0),
                at: Some(receipt.started_at),
                kind: body.kind(),
                tool: Some(receipt.tool.clone()),
                receipt: Some(receipt.id),
                snippet,
            });
        }
    }
    Ok(found)
}

/// Searches the newest transcripts first, until enough is found.
fn in_files(
    args: &SearchArgs,
    agent: ForeignAgent,
    matcher: &TextMatcher,
) -> Result<Vec<FoundPlace>, ToolError> {
    let folder = args.workspace.folder()?;
    let files = ForeignFiles::find(agent, (!args.all).then_some(folder.as_path()))?;
    let mut found = Vec::new();
    for file in files.iter() {
        match file.read() {
            Ok(transcript) => add_places(&transcript, matcher, &mut found),
            Err(error) => screen::warnings(&[error.message]),
        }
        if found.len() >= args.limit {
            break;
        }
    }
    Ok(found)
}

fn add_places(transcript: &Transcript, matcher: &TextMatcher, found: &mut Vec<FoundPlace>) {
    let tools = transcript.tool_names();
    for entry in transcript.entries.iter().rev() {
        let Some(snippet) = snippet_of(&entry.body, matcher) else { continue };
        let answered = match &entry.body {
            EntryBody::Result { call_id, .. } => tools.get(call_id.as_str()).map(|name| (*name).to_owned()),
            _ => None,
        };
        found.push(FoundPlace {
            session: transcript.session.clone(),
            from: transcript.source.name(),
            position: entry.position,
            at: entry.at,
            kind: entry.body.kind(),
            tool: tool_of(&entry.body).or(answered),
            receipt: None,
            snippet,
        });
    }
}
