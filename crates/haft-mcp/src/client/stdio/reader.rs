//! Reads what a process writes, line after line, until one of them ends.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::super::lock;
use super::super::waiters::Waiting;
use super::Shared;
use crate::wire::Lines;

/// How long nobody but callers reads at most when none of them does.
const MOMENT: Duration = Duration::from_millis(2);
/// How long a caller reads before it leaves that to the thread.
const QUICK: Duration = Duration::from_millis(10);
/// How long a process that has ended may still be heard, if others write where it wrote.
const ECHO: Duration = Duration::from_millis(500);
/// How much is read of a line that is too long before its writer is given up; shorter ones are skipped.
const MOST_SKIPPED: usize = 256 << 20;

/// What came first.
pub(super) enum Came {
    /// Something to read, or the end of it.
    Something,
    /// The end of the process, and nothing to read.
    Death,
    /// Nothing, for as long as was said.
    Nothing,
    /// The end of the wish to read.
    Stop,
}

/// Waits for something to read, for a death or for the end of the wish to read.
pub(super) fn wait_for(
    from: &OwnedFd,
    stop: &OwnedFd,
    death: Option<BorrowedFd<'_>>,
    limit: Option<Duration>,
) -> Came {
    let limit = limit.and_then(|limit| limit.try_into().ok());
    let mut all = vec![PollFd::new(from, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
    if let Some(death) = death {
        all.push(PollFd::from_borrowed_fd(death, PollFlags::IN));
    }
    loop {
        match poll(&mut all, limit.as_ref()) {
            Err(Errno::INTR) => {}
            Err(_) => return Came::Stop,
            Ok(0) => return Came::Nothing,
            Ok(_) => break,
        }
    }
    let happened = |at: usize| all.get(at).is_some_and(|one| !one.revents().is_empty());
    match (happened(1), happened(0)) {
        (true, _) => Came::Stop,
        (_, true) => Came::Something,
        _ => Came::Death,
    }
}

/// Where a process's messages come from, and who reads them: a thread that is there for nothing else, and between one call
/// and the next whoever waits for an answer, because to be woken by that thread would cost more than the answer.
pub(super) struct Reader {
    shared: Arc<Shared>,
    output: OwnedFd,
    stop: OwnedFd,
    inlet: Mutex<Inlet>,
    aside: Mutex<Aside>,
    back: Condvar,
}

/// What has been read.
struct Inlet {
    lines: Lines,
    since_a_line: usize,
}

/// What the thread knows while callers read.
#[derive(Default)]
struct Aside {
    /// When a caller was last done with it.
    last: Option<Instant>,
    /// Whether the thread has to go on at once.
    wanted: bool,
}

/// Why the thread reads no further.
enum Rest {
    /// An answer has been given, and the next one who asks may read.
    Aside,
    /// There is nothing more to read.
    Over,
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>, output: OwnedFd, stop: OwnedFd) -> Self {
        let inlet = Inlet { lines: Lines::new(shared.limits.message_bytes), since_a_line: 0 };
        let (inlet, aside, back) = (Mutex::new(inlet), Mutex::default(), Condvar::new());
        Self { shared, output, stop, inlet, aside, back }
    }

    /// The thread's whole life: it ends with the process, or when nobody wants to hear it any more.
    pub(super) fn run(&self) {
        while let Rest::Aside = self.read() {
            self.stand_aside();
        }
    }

    /// Reads until an answer has been given, the process has ended, said its last or said too much, or nobody wants more.
    fn read(&self) -> Rest {
        let mut inlet = lock(&self.inlet);
        let mut died: Option<Instant> = None;
        loop {
            if inlet.give(&self.shared) && died.is_none() && !self.shared.waiters.somebody_waits() {
                return Rest::Aside;
            }
            if inlet.since_a_line > self.most_skipped() {
                self.shared.given_up();
                return Rest::Over;
            }
            let came = match died {
                None => wait_for(&self.output, &self.stop, self.shared.process.signal(), None),
                Some(died) => {
                    wait_for(&self.output, &self.stop, None, Some(ECHO.saturating_sub(died.elapsed())))
                }
            };
            match came {
                Came::Stop => return Rest::Over,
                // What it had written before is there to be read now, or never.
                Came::Death => {
                    died = Some(Instant::now());
                    if matches!(wait_for(&self.output, &self.stop, None, Some(Duration::ZERO)), Came::Nothing)
                    {
                        break;
                    }
                }
                Came::Nothing => break,
                Came::Something if inlet.fill(&self.output) => {}
                Came::Something => break,
            }
            if died.is_some_and(|died| died.elapsed() >= ECHO) {
                break;
            }
        }
        inlet.give(&self.shared);
        if let Some(line) = inlet.lines.rest() {
            self.shared.last_line(&line);
        }
        self.shared.ended();
        Rest::Over
    }

    /// Lets callers read, until they have not for a moment or want to be helped.
    fn stand_aside(&self) {
        let mut aside = lock(&self.aside);
        loop {
            aside = self.back.wait_timeout(aside, MOMENT).unwrap_or_else(PoisonError::into_inner).0;
            let lately = aside.last.is_some_and(|last| last.elapsed() < MOMENT);
            if std::mem::take(&mut aside.wanted) || !lately {
                return;
            }
        }
    }

    /// Reads on this thread, if nobody else does, until `waiting` has its answer or that takes longer than a moment.
    pub(super) fn read_for(&self, waiting: &Waiting<'_>) {
        let mut inlet = match self.inlet.try_lock() {
            Ok(inlet) => inlet,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let until = Instant::now() + QUICK;
        inlet.give(&self.shared);
        while !waiting.has_come() && inlet.since_a_line <= self.most_skipped() {
            let left = until.saturating_duration_since(Instant::now());
            let death = self.shared.process.signal();
            // Ends of all kinds are left to the thread, which finds them again.
            let Came::Something = wait_for(&self.output, &self.stop, death, Some(left)) else { break };
            if !inlet.fill(&self.output) {
                break;
            }
            inlet.give(&self.shared);
        }
        drop(inlet);
        let mut aside = lock(&self.aside);
        aside.last = Some(Instant::now());
        if !waiting.has_come() || self.shared.waiters.somebody_waits() {
            aside.wanted = true;
            self.back.notify_one();
        }
    }

    fn most_skipped(&self) -> usize {
        MOST_SKIPPED.max(self.shared.limits.message_bytes.saturating_mul(16))
    }
}

impl Inlet {
    /// Gives every line that is here to whom it is for; whether there was one.
    fn give(&mut self, shared: &Shared) -> bool {
        let mut any = false;
        while let Some(line) = self.lines.take() {
            shared.line(&line);
            (self.since_a_line, any) = (0, true);
        }
        any
    }

    /// Reads what is there; whether there was anything.
    fn fill(&mut self, output: &OwnedFd) -> bool {
        let count = self.lines.read_from(&mut Descriptor(output.as_fd())).unwrap_or(0);
        self.since_a_line += count;
        count > 0
    }
}

struct Descriptor<'a>(BorrowedFd<'a>);

impl std::io::Read for Descriptor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match rustix::io::read(self.0, &mut *buffer) {
                Err(Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }
}
