//! What a running command writes, told to whoever watches a few times a second.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use haft_tool::{Progress, lock};

use crate::world::Watcher;

/// How long lies between two reports.
const PAUSE: Duration = Duration::from_millis(200);
/// How much one report holds; of more, the newest.
const MOST_BYTES: usize = 8 * 1024;

/// Collects what a command writes and reports it from a thread of its own, so that the command never waits for its
/// watcher.
pub(crate) struct Live {
    shared: Arc<Shared>,
    reporter: Option<JoinHandle<()>>,
}

struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    over: bool,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }

    /// What there is to report, once there is something; nothing when it is over.
    fn next(&self) -> Option<String> {
        let empty = |waiting: &mut Waiting| waiting.bytes.is_empty() && !waiting.over;
        let waiting = self.changed.wait_while(self.waiting(), empty);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let over = waiting.over;
        let text = whole_characters(&mut waiting.bytes, over);
        (!over || !text.is_empty()).then_some(text)
    }

    /// Lets some time pass, unless it is over.
    fn pause(&self) {
        let running = |waiting: &mut Waiting| !waiting.over;
        drop(self.changed.wait_timeout_while(self.waiting(), PAUSE, running));
    }
}

impl Live {
    /// Starts to report to `watcher`.
    pub(crate) fn to(watcher: &Watcher) -> Self {
        let shared = Arc::new(Shared { waiting: Mutex::default(), changed: Condvar::new() });
        let (heard, watcher) = (Arc::clone(&shared), Arc::clone(watcher));
        let reporter = std::thread::spawn(move || {
            while let Some(text) = heard.next() {
                if !text.is_empty() {
                    watcher(Progress::output(text));
                }
                heard.pause();
            }
        });
        Self { shared, reporter: Some(reporter) }
    }

    /// Takes what the command has written just now.
    pub(crate) fn hear(&self, bytes: &[u8]) {
        let mut waiting = self.shared.waiting();
        waiting.bytes.extend_from_slice(&bytes[bytes.len().saturating_sub(MOST_BYTES)..]);
        let old = waiting.bytes.len().saturating_sub(MOST_BYTES);
        waiting.bytes.drain(..old);
        self.shared.changed.notify_all();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.waiting().over = true;
        self.shared.changed.notify_all();
        if let Some(reporter) = self.reporter.take() {
            let _ = reporter.join();
        }
    }
}

/// Takes the text out of `bytes`; a character that has only begun stays there unless nothing more will come.
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
    fn a_character_is_told_whole() {
        let mut bytes = "aé".as_bytes()[..2].to_vec();
        assert_eq!(whole_characters(&mut bytes, false), "a");
        bytes.push("é".as_bytes()[1]);
        assert_eq!(whole_characters(&mut bytes, false), "é");
        bytes.extend(b"x\xc3");
        assert_eq!(whole_characters(&mut bytes, true), "x\u{fffd}");
    }

    #[test]
    fn all_that_was_written_is_told_before_the_end() {
        let told = Arc::new(Mutex::new(String::new()));
        let keep = Arc::clone(&told);
        let watcher: Watcher =
            Arc::new(move |progress: Progress| keep.lock().unwrap().push_str(&progress.output.unwrap()));
        let live = Live::to(&watcher);
        for line in 0..100 {
            live.hear(format!("{line}\n").as_bytes());
        }
        drop(live);
        let all: String = (0..100).map(|line| format!("{line}\n")).collect();
        assert_eq!(*told.lock().unwrap(), all);
    }

    #[test]
    fn of_too_much_the_newest_is_told() {
        let mut first = vec![b'a'; 3 * MOST_BYTES];
        first.extend(b"end");
        let told = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&told);
        let watcher: Watcher = Arc::new(move |progress: Progress| keep.lock().unwrap().push(progress.output));
        let live = Live::to(&watcher);
        live.hear(&first);
        drop(live);
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 1);
        assert!(told[0].as_ref().is_some_and(|text| text.len() == MOST_BYTES && text.ends_with("aend")));
    }
}
