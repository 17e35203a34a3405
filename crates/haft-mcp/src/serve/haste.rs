//! Whether to fall asleep before the next request.
//!
//! To be woken on an idle processor takes longer than most answers. So while requests come in quick succession, the reader
//! looks for the next one for a moment before it sleeps. Where that was in vain, it is not tried again for a while: the
//! client may have to share this processor, and could not write what is looked for.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long the reader looks.
const LOOK: Duration = Duration::from_micros(50);
/// A request that comes sooner than this was in quick succession.
const QUICK: Duration = Duration::from_micros(150);
/// So many of them in a row make it worth while.
const ENOUGH: i32 = 8;
/// So many more are needed after it was in vain.
const IN_VAIN: i32 = 64;

/// How quickly requests have come lately.
#[derive(Default)]
pub(super) struct Haste {
    in_a_row: i32,
}

impl Haste {
    /// Looks for something to read for a moment, if that is likely to be there soon.
    pub(super) fn look(&mut self, input: &OwnedFd) {
        if self.in_a_row < ENOUGH {
            return;
        }
        let start = Instant::now();
        while start.elapsed() < LOOK {
            if is_there(input) {
                return;
            }
        }
        self.in_a_row = -IN_VAIN;
    }

    /// Takes note of how long the next request took to come.
    pub(super) fn waited(&mut self, time: Duration) {
        self.in_a_row = if time < QUICK { self.in_a_row.saturating_add(1) } else { self.in_a_row.min(0) };
    }
}

/// Whether there is something to read now. Whatever is wrong with it, reading tells.
pub(super) fn is_there(input: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&Timespec::default())) != Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_tried_when_requests_come_quickly_and_not_again_soon_when_that_was_in_vain() {
        let (input, output) = rustix::pipe::pipe().unwrap();
        let mut haste = Haste::default();
        let quick = |haste: &mut Haste, times: i32| (0..times).for_each(|_| haste.waited(Duration::ZERO));
        quick(&mut haste, ENOUGH - 1);
        haste.waited(Duration::from_secs(1));
        quick(&mut haste, ENOUGH - 1);
        haste.look(&input);
        assert_eq!(haste.in_a_row, ENOUGH - 1, "not often enough yet");
        quick(&mut haste, 1);
        rustix::io::write(&output, b"x").unwrap();
        haste.look(&input);
        assert_eq!(haste.in_a_row, ENOUGH, "something was there");
        rustix::io::read(&input, &mut [0]).unwrap();
        haste.look(&input);
        assert_eq!(haste.in_a_row, -IN_VAIN);
        quick(&mut haste, IN_VAIN);
        haste.waited(Duration::from_secs(1));
        assert_eq!(haste.in_a_row, 0);
    }
}
