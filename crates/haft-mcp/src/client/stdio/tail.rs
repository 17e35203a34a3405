//! What a process says on its standard error: read for ever, and the end of it kept.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::super::{lock, portable};
use super::reader::{Came, wait_for};

/// How much of it is kept.
const KEPT: usize = 8 << 10;

/// The last words of a process.
#[derive(Default)]
pub(super) struct Tail {
    state: Mutex<(VecDeque<u8>, bool)>,
    ended: Condvar,
}

impl Tail {
    /// Reads until there is no more, or nobody wants more.
    pub(super) fn drain(&self, errors: &OwnedFd, stop: &OwnedFd) {
        let mut buffer = vec![0; 16 << 10];
        while matches!(wait_for(errors, stop, None, None), Came::Something) {
            match rustix::io::read(errors, &mut *buffer) {
                Ok(0) => break,
                Ok(count) => self.keep(buffer.get(..count).unwrap_or_default()),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(_) => break,
            }
        }
        lock(&self.state).1 = true;
        self.ended.notify_all();
    }

    fn keep(&self, bytes: &[u8]) {
        let mut state = lock(&self.state);
        let bytes = bytes.get(bytes.len().saturating_sub(KEPT)..).unwrap_or_default();
        let over = (state.0.len() + bytes.len()).saturating_sub(KEPT);
        state.0.drain(..over);
        state.0.extend(bytes);
    }

    /// The last words, cleaned; of a process that has ended, all of them if they come within `limit`.
    pub(super) fn words(&self, limit: Duration) -> String {
        let held = lock(&self.state);
        let held = self.ended.wait_timeout_while(held, limit, |state| !state.1);
        let mut held = held.unwrap_or_else(PoisonError::into_inner).0;
        let text = String::from_utf8_lossy(held.0.make_contiguous()).into_owned();
        portable::clean(&text, KEPT).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_flood_is_read_to_its_end_and_only_that_is_kept() {
        let (reading, writing) = rustix::pipe::pipe().unwrap();
        let (stop, _go_on) = rustix::pipe::pipe().unwrap();
        let tail = Arc::new(Tail::default());
        let own = Arc::clone(&tail);
        let drainer = std::thread::spawn(move || own.drain(&reading, &stop));
        let mut errors = std::fs::File::from(writing);
        errors.write_all(&vec![b'x'; 10 << 20]).unwrap();
        errors.write_all(b"\x1b[31mlast \xff words\x1b[0m\n").unwrap();
        drop(errors);
        drainer.join().unwrap();
        let words = tail.words(Duration::ZERO);
        assert!(words.ends_with("xlast \u{fffd} words") && words.len() <= KEPT + 3, "{}", words.len());
    }

    #[test]
    fn a_drain_ends_when_nobody_wants_more_though_the_process_lives_on() {
        let (reading, _writing) = rustix::pipe::pipe().unwrap();
        let (stop, go_on) = rustix::pipe::pipe().unwrap();
        let drainer = std::thread::spawn(move || Tail::default().drain(&reading, &stop));
        drop(go_on);
        drainer.join().unwrap();
    }
}
