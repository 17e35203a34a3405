//! Reports the output of a running command a few times a second.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use haft_tool::{Progress, lock};

use crate::world::ProgressSink;

/// The time between two reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);
/// The size of one report; of more output, only the newest is reported.
const MAX_REPORT_BYTES: usize = 8 * 1024;

/// Buffers a command's output and reports it on a thread of its own, so that the command never waits for the receiver.
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
    ended: bool,
}

impl ReportBuffer {
    fn pending(&self) -> MutexGuard<'_, PendingOutput> {
        lock(&self.pending)
    }

    /// Waits for output and takes it; nothing once the command has ended.
    fn next(&self) -> Option<String> {
        let empty = |pending: &mut PendingOutput| pending.bytes.is_empty() && !pending.ended;
        let pending = self.changed.wait_while(self.pending(), empty);
        let mut pending = pending.unwrap_or_else(PoisonError::into_inner);
        let ended = pending.ended;
        let text = whole_characters(&mut pending.bytes, ended);
        (!ended || !text.is_empty()).then_some(text)
    }

    /// Waits for the next report, unless the command has ended.
    fn pause(&self) {
        let running = |pending: &mut PendingOutput| !pending.ended;
        drop(self.changed.wait_timeout_while(self.pending(), REPORT_INTERVAL, running));
    }
}

impl OutputReporter {
    /// Starts to report to `sink`.
    pub(crate) fn new(sink: &ProgressSink) -> Self {
        let buffer = Arc::new(ReportBuffer { pending: Mutex::default(), changed: Condvar::new() });
        let (source, sink) = (Arc::clone(&buffer), Arc::clone(sink));
        let reporter = std::thread::spawn(move || {
            while let Some(text) = source.next() {
                if !text.is_empty() {
                    sink(Progress::output(text));
                }
                source.pause();
            }
        });
        Self { buffer, reporter: Some(reporter) }
    }

    /// Adds output of the command.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut pending = self.buffer.pending();
        pending.bytes.extend_from_slice(&bytes[bytes.len().saturating_sub(MAX_REPORT_BYTES)..]);
        let old = pending.bytes.len().saturating_sub(MAX_REPORT_BYTES);
        pending.bytes.drain(..old);
        self.buffer.changed.notify_all();
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

/// Takes the text out of `bytes`; an incomplete character stays there unless `all`.
fn whole_characters(bytes: &mut Vec<u8>, all: bool) -> String {
    let end = match std::str::from_utf8(bytes) {
        Err(error) if !all && error.error_len().is_none() => error.valid_up_to(),
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
        assert_eq!(whole_characters(&mut bytes, false), "a");
        bytes.push("é".as_bytes()[1]);
        assert_eq!(whole_characters(&mut bytes, false), "é");
        bytes.extend(b"x\xc3");
        assert_eq!(whole_characters(&mut bytes, true), "x\u{fffd}");
    }

    #[test]
    fn all_output_is_reported_before_the_end() {
        let reported = Arc::new(Mutex::new(String::new()));
        let keep = Arc::clone(&reported);
        let sink: ProgressSink =
            Arc::new(move |progress: Progress| keep.lock().unwrap().push_str(&progress.output.unwrap()));
        let reporter = OutputReporter::new(&sink);
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
        let reporter = OutputReporter::new(&sink);
        reporter.push(&first);
        drop(reporter);
        let reported = reported.lock().unwrap();
        assert_eq!(reported.len(), 1);
        assert!(
            reported[0].as_ref().is_some_and(|text| text.len() == MAX_REPORT_BYTES && text.ends_with("aend"))
        );
    }
}
