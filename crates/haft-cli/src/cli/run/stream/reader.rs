//! Reads the lines of the program that drives the run, on a thread of its own.

use std::io::BufRead;
use std::sync::Arc;

use haft_compat::stream::{ControlRequest, HostLine};
use haft_tool::{ToolError, clip_chars, json};

use super::super::super::screen;
use super::session::HostSession;

/// Longest line, which may hold images.
const MAX_INPUT_LINE_BYTES: usize = 64 << 20;
/// How much of an error is shown.
const MAX_ERROR_CHARS: usize = 300;

/// What came of reading a line.
enum ReadLine {
    Line,
    TooLong,
    End,
}

/// Starts the thread.
pub(super) fn start(session: &Arc<HostSession>) -> Result<(), ToolError> {
    let shared = Arc::clone(session);
    let work = move || {
        read_all(&shared, std::io::stdin().lock());
        shared.host_is_gone();
        shared.writer.wait_for_reader();
    };
    let started = std::thread::Builder::new().name("haft-stream-reader".to_owned()).spawn(work);
    started.map(drop).map_err(|error| ToolError::io("start a thread that reads the stream", &error))
}

fn read_all(session: &HostSession, mut input: impl BufRead) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match read_line(&mut input, &mut line) {
            Ok(ReadLine::End) | Err(_) => return,
            Ok(ReadLine::TooLong) => {
                warn(&format!("a line of more than {MAX_INPUT_LINE_BYTES} bytes is ignored"));
            }
            Ok(ReadLine::Line) if line.trim_ascii().is_empty() => {}
            Ok(ReadLine::Line) => match HostLine::read(&line) {
                Ok(read) => take(session, read),
                Err(why) => warn(&format!("a line of the stream is ignored: {why}")),
            },
        }
    }
}

fn take(session: &HostSession, line: HostLine) {
    match line {
        HostLine::Reply(reply) => session.link.take_reply(reply),
        HostLine::User(prompt) => {
            let is_added = session.inbox.add_prompt(prompt);
            if !is_added {
                warn("a message is ignored: too many wait for their turn");
            }
        }
        HostLine::Request { id, request } => {
            // These two are answered while everything else waits for something.
            match ControlRequest::read(&request) {
                Ok(Some(ControlRequest::Interrupt { cancel_queued })) => {
                    let (queued, turn) = session.inbox.queued(cancel_queued);
                    let answer = if cancel_queued {
                        json!({"still_queued": [], "cancelled": queued})
                    } else {
                        json!({"still_queued": queued})
                    };
                    session.answer(&id, Ok(answer));
                    if let Some(turn) = turn {
                        turn.cancel();
                    }
                }
                Ok(None) => session.refuse_unknown(&id, &request),
                Ok(Some(_)) | Err(_) => {
                    if !session.inbox.add_request((id.clone(), request)) {
                        session.answer(&id, Err("too many requests wait for their answers".to_owned()));
                    }
                }
            }
        }
        _ => {}
    }
}

/// Reads up to the next line feed. Of a line that is too long nothing is kept.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<ReadLine> {
    let mut is_too_long = false;
    loop {
        let read = match input.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read.is_empty() {
            return Ok(match (line.is_empty(), is_too_long) {
                (_, true) => ReadLine::TooLong,
                (true, false) => ReadLine::End,
                (false, false) => ReadLine::Line,
            });
        }
        let (part, used, is_end) = match read.iter().position(|byte| *byte == b'\n') {
            Some(at) => (read.get(..at).unwrap_or_default(), at + 1, true),
            None => (read, read.len(), false),
        };
        if !is_too_long && line.len() + part.len() > MAX_INPUT_LINE_BYTES {
            is_too_long = true;
            line.clear();
            line.shrink_to(0);
        }
        if !is_too_long {
            line.extend_from_slice(part);
        }
        input.consume(used);
        if is_end {
            return Ok(if is_too_long { ReadLine::TooLong } else { ReadLine::Line });
        }
    }
}

fn warn(text: &str) {
    screen::warnings(&[clip_chars(text, MAX_ERROR_CHARS, 0).into_owned()]);
}
