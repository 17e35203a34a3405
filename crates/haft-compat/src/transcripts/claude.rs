//! Claude Code's transcripts: one line per block of a message, linked by `uuid` and `parentUuid`.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use haft_tool::Value;

use super::claude_line::{LineMark, bodies};
use super::json_lines::{objects, owned, text_of};
use super::timestamp::milliseconds;
use super::{EntryBody, Transcript, TranscriptSource};

/// The model of answers that the program made itself.
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// Reads a transcript of Claude Code.
pub fn read_claude_transcript(bytes: &[u8]) -> Transcript {
    let mut transcript = Transcript { source: TranscriptSource::Claude, ..Transcript::default() };
    let mut lines: Vec<(LineMark, Range<usize>)> = Vec::new();
    for (number, line) in objects(bytes) {
        let Some(line) = line else {
            transcript.invalid_lines += 1;
            continue;
        };
        let begin = transcript.entries.len();
        add(&mut transcript, number, &line);
        lines.push((LineMark::of(&line), begin..transcript.entries.len()));
    }
    mark_live(&mut transcript, &lines);
    transcript
}

fn add(transcript: &mut Transcript, number: u64, line: &Value) {
    if transcript.session.is_empty() {
        text_of(line, "sessionId").clone_into(&mut transcript.session);
    }
    match text_of(line, "type") {
        "user" | "assistant" => {}
        "summary" => {
            transcript.name = transcript.name.take().or_else(|| owned(line, "summary"));
            return;
        }
        "custom-title" => {
            transcript.name = owned(line, "customTitle").or(transcript.name.take());
            return;
        }
        _ => {
            transcript.skipped_lines += 1;
            return;
        }
    }
    let Some(bodies) = bodies(line) else {
        transcript.invalid_lines += 1;
        return;
    };
    let at = milliseconds(text_of(line, "timestamp"));
    transcript.started_at = transcript.started_at.or(at);
    transcript.workspace = transcript.workspace.take().or_else(|| owned(line, "cwd"));
    let model = line.get("message").and_then(|message| owned(message, "model"));
    transcript.model = model.filter(|model| model != SYNTHETIC_MODEL).or(transcript.model.take());
    for body in bodies {
        transcript.push(number, at, body);
    }
}

/// Marks what is not part of the conversation as it is now: what was said to subagents, and what a later prompt has replaced, which is
/// not among the ancestors of the last message.
fn mark_live(transcript: &mut Transcript, lines: &[(LineMark, Range<usize>)]) {
    let mut by_uuid: HashMap<&str, usize> = HashMap::new();
    for (at, (mark, _)) in lines.iter().enumerate() {
        if let Some(uuid) = &mark.uuid {
            by_uuid.entry(uuid).or_insert(at);
        }
    }
    let is_of_run = |mark: &LineMark| mark.is_message && !mark.is_sidechain;
    let last = lines.iter().rposition(|(mark, _)| is_of_run(mark));
    let is_linked = last.and_then(|at| lines.get(at)).is_some_and(|(mark, _)| mark.uuid.is_some());
    let mut live: HashSet<usize> = HashSet::new();
    let mut next = last;
    while let Some(at) = next
        && live.insert(at)
    {
        let parent = lines.get(at).and_then(|(mark, _)| mark.parent.as_deref());
        next = parent.and_then(|parent| by_uuid.get(parent).copied());
    }
    // The blocks of one answer follow each other, but the results of its calls each follow their own block: those that are
    // not in the line of ancestors belong to the conversation too.
    let answers: HashSet<&str> = lines
        .iter()
        .enumerate()
        .filter(|(at, _)| live.contains(at))
        .filter_map(|(_, (mark, _))| mark.message_id.as_deref())
        .collect();
    let is_part = |mark: &LineMark| mark.message_id.as_deref().is_some_and(|id| answers.contains(id));
    let mut is_live = vec![false; transcript.entries.len()];
    for (at, (mark, range)) in lines.iter().enumerate() {
        if is_of_run(mark) && (!is_linked || live.contains(&at) || is_part(mark)) {
            is_live.get_mut(range.clone()).unwrap_or_default().fill(true);
        }
    }
    let entries = &mut transcript.entries;
    let live_calls: HashSet<String> = entries
        .iter()
        .zip(&is_live)
        .filter(|(_, is_live)| **is_live)
        .filter_map(|(entry, _)| match &entry.body {
            EntryBody::Call { id, .. } => Some(id.clone()),
            _ => None,
        })
        .collect();
    for (entry, is_live) in entries.iter_mut().zip(is_live) {
        let answers_live_call =
            matches!(&entry.body, EntryBody::Result { call_id, .. } if live_calls.contains(call_id));
        entry.is_live = is_live || answers_live_call;
    }
}
