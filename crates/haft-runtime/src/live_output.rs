//! Reports the output of a running command, and what is refused to it, a few times a second.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use haft_sandbox::RefusalSink;
use haft_tool::{Denial, LiveOutput, Progress, lock};

use crate::world::ProgressSink;

/// The time between two reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// The size of one report to the caller; of more output, only the newest is reported.
const MAX_REPORT_BYTES: usize = 8 * 1024;
/// The size of one report to other processes.
const MAX_PENDING_BYTES: usize = 64 * 1024;
/// More refusals of one command are only in its result.
const MAX_REPORTED_REFUSALS: usize = 100;

/// Opens the output that other processes read.
type OpenLiveOutput = Box<dyn FnOnce() -> Option<Box<dyn LiveOutput>> + Send>;

/// Buffers a command's output and refusals and reports them on a thread of its own, so that the command never waits for a
/// receiver. The caller gets them from the beginning, other processes get the output only if the command takes longer than most.
/// The thread costs 25 µs, a hundredth of the shortest command.
pub(crate) struct OutputReporter {
    buffer: Arc<ReportBuffer>,
    reporter: Option<JoinHandle<()>>,
}

struct ReportBuffer {
    pending: Mutex<PendingOutput>,
    changed: Condvar,
}

#[derive(Default)]
struct PendingOutput {
    bytes: Vec<u8>,
    /// How many older bytes were dropped.
    skipped: u64,
    /// Lines about refusals.
    refusals: Vec<String>,
    /// How many there were.
    refusal_count: usize,
    ended: bool,
}

/// What is reported at once.
struct Report {
    skipped: u64,
    bytes: Vec<u8>,
    refusals: Vec<String>,
}

impl ReportBuffer {
    fn pending(&self) -> MutexGuard<'_, PendingOutput> {
        lock(&self.pending)
    }

    /// Waits for output or refusals and takes them; nothing once the command has ended.
    fn next(&self) -> Option<Report> {
        let has_some = |pending: &PendingOutput| !pending.bytes.is_empty() || !pending.refusals.is_empty();
        let pending = self.changed.wait_while(self.pending(), |pending| !has_some(pending) && !pending.ended);
        let mut pending = pending.unwrap_or_else(PoisonError::into_inner);
        (!pending.ended || has_some(&pending)).then(|| Report {
            skipped: std::mem::take(&mut pending.skipped),
            bytes: std::mem::take(&mut pending.bytes),
            refusals: std::mem::take(&mut pending.refusals),
        })
    }

    /// Waits until the next report is due; returns whether the command still runs.
    fn pause(&self) -> bool {
        let running = |pending: &mut PendingOutput| !pending.ended;
        let paused = self.changed.wait_timeout_while(self.pending(), REPORT_INTERVAL, running);
        !paused.unwrap_or_else(PoisonError::into_inner).0.ended
    }
}

impl OutputReporter {
    /// Starts to report to `caller`, if there is one, and to other processes.
    pub(crate) fn new(caller: Option<ProgressSink>, open_live: OpenLiveOutput) -> Self {
        let buffer = Arc::new(ReportBuffer { pending: Mutex::default(), changed: Condvar::new() });
        let source = Arc::clone(&buffer);
        let reporter = std::thread::spawn(move || report(&source, caller.as_ref(), open_live));
        Self { buffer, reporter: Some(reporter) }
    }

    /// Receives the command's refusals. Each is reported once, those that come close together in one message.
    pub(crate) fn refusal_sink(&self) -> RefusalSink {
        let buffer = Arc::clone(&self.buffer);
        Arc::new(move |denial: &Denial| {
            let mut pending = buffer.pending();
            if denial.times == 1 && pending.refusal_count < MAX_REPORTED_REFUSALS {
                pending.refusal_count += 1;
                pending.refusals.push(denial.line());
                buffer.changed.notify_all();
            }
        })
    }

    /// Adds output of the command.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut pending = self.buffer.pending();
        pending.bytes.extend_from_slice(bytes);
        let old = pending.bytes.len().saturating_sub(MAX_PENDING_BYTES);
        pending.bytes.drain(..old);
        pending.skipped += old as u64;
        self.buffer.changed.notify_all();
    }
}

fn report(source: &ReportBuffer, caller: Option<&ProgressSink>, open_live: OpenLiveOutput) {
    let mut open_live = Some(open_live);
    let mut live: Option<Box<dyn LiveOutput>> = None;
    // What the caller got before the live output was opened: the live output begins with it.
    let mut early = (0, Vec::new());
    let mut cut_character = Vec::new();
    while let Some(Report { skipped, bytes, refusals }) = source.next() {
        if let Some(caller) = caller.filter(|_| !refusals.is_empty()) {
            caller(Progress::message(refusals.join("\n")));
        }
        if let Some(caller) = caller {
            cut_character.extend_from_slice(&bytes[bytes.len().saturating_sub(MAX_REPORT_BYTES)..]);
            let text = whole_characters(&mut cut_character);
            if !text.is_empty() {
                caller(Progress::output(text));
            }
        }
        match &mut live {
            None => early = (early.0 + skipped, bytes),
            // If this fails, the output is seen when the command has ended.
            Some(live) => _ = live.push(skipped, &bytes),
        }
        let is_running = source.pause();
        if is_running && let Some(open) = open_live.take() {
            live = open();
            if let Some(live) = &mut live {
                let (skipped, bytes) = std::mem::take(&mut early);
                let _ = live.push(skipped, &bytes);
            }
        }
    }
    if let Some(caller) = caller
        && !cut_character.is_empty()
    {
        caller(Progress::output(String::from_utf8_lossy(&cut_character).into_owned()));
    }
}

impl Drop for OutputReporter {
    fn drop(&mut self) {
        self.buffer.pending().ended = true;
        self.buffer.changed.notify_all();
        if let Some(reporter) = self.reporter.take() {
            let _ = reporter.join();
        }
    }
}

/// Takes the text out of `bytes`; an incomplete character at the end stays there.
fn whole_characters(bytes: &mut Vec<u8>) -> String {
    let end = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let rest = bytes.split_off(end);
    String::from_utf8_lossy(&std::mem::replace(bytes, rest)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_never_split() {
        let mut bytes = "aé".as_bytes()[..2].to_vec();
        assert_eq!(whole_characters(&mut bytes), "a");
        bytes.push("é".as_bytes()[1]);
        assert_eq!(whole_characters(&mut bytes), "é");
        bytes.extend(b"\xffx\xc3");
        assert_eq!(whole_characters(&mut bytes), "\u{fffd}x\u{fffd}");
    }

    #[test]
    fn bytes_of_a_character_that_never_ends_are_reported_at_the_end() {
        let (reports, reported) = std::sync::mpsc::channel();
        let sink: ProgressSink = Arc::new(move |progress: Progress| {
            let _ = reports.send(progress.output.unwrap());
        });
        let reporter = OutputReporter::new(Some(sink), Box::new(|| None));
        reporter.push(b"a\xc3");
        assert_eq!(reported.recv().unwrap(), "a");
        drop(reporter);
        assert_eq!(reported.recv().unwrap(), "\u{fffd}");
    }

    #[test]
    fn all_output_is_reported_before_the_end() {
        let reported = Arc::new(Mutex::new(String::new()));
        let keep = Arc::clone(&reported);
        let sink: ProgressSink =
            Arc::new(move |progress: Progress| keep.lock().unwrap().push_str(&progress.output.unwrap()));
        let reporter = OutputReporter::new(Some(sink), Box::new(|| None));
        for line in 0..100 {
            reporter.push(format!("{line}\n").as_bytes());
        }
        drop(reporter);
        let all: String = (0..100).map(|line| format!("{line}\n")).collect();
        assert_eq!(*reported.lock().unwrap(), all);
    }

    #[test]
    fn of_too_much_output_the_newest_is_reported() {
        let mut first = vec![b'a'; 3 * MAX_REPORT_BYTES];
        first.extend(b"end");
        let reported = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&reported);
        let sink: ProgressSink =
            Arc::new(move |progress: Progress| keep.lock().unwrap().push(progress.output));
        let reporter = OutputReporter::new(Some(sink), Box::new(|| None));
        reporter.push(&first);
        drop(reporter);
        let reported = reported.lock().unwrap();
        assert_eq!(reported.len(), 1);
        assert!(
            reported[0].as_ref().is_some_and(|text| text.len() == MAX_REPORT_BYTES && text.ends_with("aend"))
        );
    }
}
