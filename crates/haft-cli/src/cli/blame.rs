//! `haft blame`: which call wrote which lines of a file.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;
use haft_files::{hash, read_named};
use haft_ledger::{Ledger, RecordedVersion};
use haft_tool::{ErrorKind, Hash, Receipt, ToolError, json};
use similar::{ChangeTag, TextDiff};

use super::exit::CliExit;
use super::local_time::local_time;
use super::screen::{self, FAINT, NAME, styled};
use super::view::ViewArgs;
use super::{CommandResult, paths};

/// Larger files are refused.
const MAX_FILE_BYTES: u64 = 16 << 20;

#[derive(Debug, Args)]
#[command(
    after_help = "A line is marked \"before\" if it is older than the first recorded call, and \"other\" if another \
program wrote it since then.\n\nExamples:\n  haft blame src/main.rs\n  haft blame --json src/main.rs"
)]
pub(super) struct BlameArgs {
    /// File to explain.
    file: PathBuf,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    view: ViewArgs,
}

/// Who wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineOrigin {
    /// It is older than the first recorded call.
    Before,
    /// The version with this index.
    Call(usize),
    /// Another program, since the first recorded call.
    Other,
}

pub(super) fn run(args: &BlameArgs) -> CommandResult {
    args.view.set_colors();
    let path = paths::named(&args.file)?;
    let ledger = Ledger::open(Ledger::home_from_env()?)?;
    let name = path.display().to_string();
    let bytes = read_named(&path, MAX_FILE_BYTES).map_err(|error| {
        // The name may contain a line break.
        ToolError::new(error.kind, error.message.replace(&name, &screen::escape(&name)))
    })?;
    let current = text_of(&bytes).ok_or_else(|| {
        let message = format!("{} is not a text file", screen::escape(&name));
        ToolError::new(ErrorKind::InvalidPath, message)
    })?;
    let versions = ledger.file_history(&path)?;
    if versions.is_empty() {
        screen::note("no recorded call has changed this file");
    }
    let origins = origins(&ledger, &versions, &current, &hash(&bytes));
    let mut text = String::new();
    for (at, (line, origin)) in current.lines().zip(&origins).enumerate() {
        let receipt = match origin {
            LineOrigin::Call(index) => Some(&versions[*index].receipt),
            _ => None,
        };
        if args.json {
            let mut object = json!({"line": at + 1, "origin": word(*origin), "text": line});
            if let Some(receipt) = receipt {
                object["call"] = json!(receipt.id);
                object["tool"] = json!(receipt.tool);
                object["session"] = json!(receipt.session);
                object["started_at"] = json!(receipt.started_at);
            }
            text.push_str(&format!("{object}\n"));
        } else {
            text.push_str(&format!(
                "{} {:>5} {}\n",
                margin(*origin, receipt),
                at + 1,
                screen::sanitize(line)
            ));
        }
    }
    if args.json {
        if !text.is_empty() {
            screen::result(&text);
        }
    } else {
        args.view.show(&text);
    }
    Ok(CliExit::Done)
}

fn word(origin: LineOrigin) -> &'static str {
    match origin {
        LineOrigin::Before => "before",
        LineOrigin::Call(_) => "call",
        LineOrigin::Other => "other",
    }
}

/// The call, its time and its tool, or where else the line is from.
fn margin(origin: LineOrigin, receipt: Option<&Receipt>) -> String {
    match receipt {
        Some(receipt) => format!(
            "{:>6} {} {}",
            receipt.id,
            styled(FAINT, &local_time(receipt.started_at)),
            styled(NAME, &format!("{:<8}", screen::escape(&receipt.tool)))
        ),
        None => styled(FAINT, &format!("{:>6} {:28}", word(origin), "")),
    }
}

/// The origin of each line of the current text. A version whose content is not known breaks the chain: what is in the next known
/// one is taken for older.
fn origins(
    ledger: &Ledger,
    versions: &[RecordedVersion],
    current: &str,
    current_hash: &str,
) -> Vec<LineOrigin> {
    let stored = |hash: &str| ledger.blob(hash).ok().and_then(|bytes| text_of(&bytes));
    let mut known: HashMap<Hash, Vec<LineOrigin>> = HashMap::new();
    let mut newest: Option<BlamedLines> = None;
    for (index, version) in versions.iter().enumerate() {
        let before = version.before.as_file().map_or(String::new(), |file| file.hash.clone());
        if newest.as_ref().is_none_or(|newest| newest.hash != before) {
            // Another program has changed the file since the last call, or this is the first one.
            let origin = if newest.is_some() { LineOrigin::Other } else { LineOrigin::Before };
            let text = if before.is_empty() { Some(String::new()) } else { stored(&before) };
            newest = text.map(|text| BlamedLines::next(newest.as_ref(), before, text, origin, &known));
        }
        let Some(after) = version.after.as_file() else {
            newest = None;
            continue;
        };
        let text = if after.hash == current_hash { Some(current.to_owned()) } else { stored(&after.hash) };
        let Some(text) = text else { continue };
        let lines =
            BlamedLines::next(newest.as_ref(), after.hash.clone(), text, LineOrigin::Call(index), &known);
        known.insert(after.hash.clone(), lines.origins.clone());
        newest = Some(lines);
    }
    let origin = if newest.is_some() { LineOrigin::Other } else { LineOrigin::Before };
    BlamedLines::next(newest.as_ref(), current_hash.to_owned(), current.to_owned(), origin, &known).origins
}

/// A version of the file, with the origin of each line.
struct BlamedLines {
    hash: Hash,
    text: String,
    origins: Vec<LineOrigin>,
}

impl BlamedLines {
    /// The version after `previous`; its new lines are from `origin`. One that was there before has its former origins: it was
    /// restored.
    fn next(
        previous: Option<&Self>,
        hash: Hash,
        text: String,
        origin: LineOrigin,
        known: &HashMap<Hash, Vec<LineOrigin>>,
    ) -> Self {
        if let Some(origins) = known.get(&hash) {
            return Self { hash, text, origins: origins.clone() };
        }
        let mut origins = Vec::new();
        let old = previous.map_or("", |previous| &previous.text);
        for change in TextDiff::from_lines(old, &text).iter_all_changes() {
            match change.tag() {
                ChangeTag::Insert => origins.push(origin),
                ChangeTag::Equal => {
                    let from = previous.zip(change.old_index()).and_then(|(old, at)| old.origins.get(at));
                    origins.push(from.copied().unwrap_or(origin));
                }
                ChangeTag::Delete => {}
            }
        }
        Self { hash, text, origins }
    }
}

fn text_of(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).map(str::to_owned)
}
