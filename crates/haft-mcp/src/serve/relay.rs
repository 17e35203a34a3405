//! A baton that goes from thread to thread: whoever has it reads.
//!
//! While its holder is busy the baton lies there. The holder takes it up again if it still lies there; if that takes too
//! long, one of those who stand by does. To lay it down and take it up costs no wake-up and, as long as the alarm is set
//! from the time before, nothing of the kernel's.

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use haft_tool::ToolError;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::peer::lock;

/// How long the baton lies before another takes it.
const MOMENT: Duration = Duration::from_millis(2);
/// How often somebody looks whether a baton lies there that is in use: for about as long as it takes to read a message
/// that is here already.
const SHORTLY: usize = 100;
/// How many stand by at most; who comes in addition may go home.
const MOST_STANDING_BY: usize = 4;

/// The baton, if it lies there.
struct Lying<T> {
    baton: Option<T>,
    /// From when on anybody may take it.
    free: Instant,
}

/// The baton and those who wait for it.
pub(super) struct Relay<T> {
    lying: Mutex<Lying<T>>,
    /// Goes off when the baton has been lying for too long.
    alarm: OwnedFd,
    /// Whether it will go off without anybody setting it again.
    alarm_is_set: AtomicBool,
    /// Whether whoever has the baton waits for bytes, and so will not lay it down soon.
    waiting: AtomicBool,
    /// Held by the one who waits for the alarm.
    watching: Mutex<()>,
    standing_by: AtomicUsize,
    closed: AtomicBool,
}

impl<T> Relay<T> {
    /// A relay whose baton lies there for the first who comes.
    pub(super) fn new(baton: T) -> Result<Self, ToolError> {
        let alarm = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
            .map_err(|error| ToolError::io("set up a timer", &error.into()))?;
        let relay = Self {
            lying: Mutex::new(Lying { baton: Some(baton), free: Instant::now() }),
            alarm,
            alarm_is_set: AtomicBool::new(true),
            waiting: AtomicBool::new(false),
            watching: Mutex::new(()),
            standing_by: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        };
        relay.ring_in(Duration::from_nanos(1));
        Ok(relay)
    }

    /// Waits for the baton; none when there is no use in waiting.
    pub(super) fn stand_by(&self) -> Option<T> {
        if self.standing_by.fetch_add(1, Ordering::SeqCst) >= MOST_STANDING_BY {
            self.standing_by.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        let baton = self.wait();
        self.standing_by.fetch_sub(1, Ordering::SeqCst);
        baton
    }

    fn wait(&self) -> Option<T> {
        let _the_one_who_watches = lock(&self.watching);
        let mut rings = [0; 8];
        loop {
            if self.closed.load(Ordering::SeqCst) {
                return None;
            }
            match rustix::io::read(&self.alarm, &mut rings) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
            if self.closed.load(Ordering::SeqCst) {
                // The next one who watches shall hear it, too.
                self.ring_in(Duration::from_nanos(1));
                return None;
            }
            self.alarm_is_set.store(false, Ordering::SeqCst);
            let mut lying = lock(&self.lying);
            if lying.baton.is_none() {
                continue;
            }
            let early = lying.free.saturating_duration_since(Instant::now());
            if early.is_zero() {
                return lying.baton.take();
            }
            self.alarm_is_set.store(true, Ordering::SeqCst);
            self.ring_in(early);
        }
    }

    /// Whether anybody would take the baton if it lay there now.
    pub(super) fn somebody_stands_by(&self) -> bool {
        self.standing_by.load(Ordering::SeqCst) > 0
    }

    /// Says whether the holder of the baton waits for bytes.
    pub(super) fn waits(&self, waiting: bool) {
        self.waiting.store(waiting, Ordering::SeqCst);
    }

    /// Lays the baton down, for a moment or for the next who comes.
    pub(super) fn put_down(&self, baton: T, for_a_moment: bool) {
        let mut free = Instant::now();
        if for_a_moment {
            free += MOMENT;
        }
        *lock(&self.lying) = Lying { baton: Some(baton), free };
        if !for_a_moment {
            self.ring_in(Duration::from_nanos(1));
        } else if !self.alarm_is_set.swap(true, Ordering::SeqCst) {
            self.ring_in(MOMENT);
        }
    }

    /// Takes the baton if it still lies there, or is about to.
    pub(super) fn pick_up(&self) -> Option<T> {
        for _ in 0..SHORTLY {
            let baton = self.lying.try_lock().ok().and_then(|mut lying| lying.baton.take());
            if baton.is_some() {
                return baton;
            }
            if self.waiting.load(Ordering::SeqCst) {
                break;
            }
            std::hint::spin_loop();
        }
        lock(&self.lying).baton.take()
    }

    /// Sends everybody home.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.ring_in(Duration::from_nanos(1));
    }

    fn ring_in(&self, time: Duration) {
        // No time at all would switch it off.
        let nanoseconds = i64::from(time.subsec_nanos().max(1));
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: 0, tv_nsec: nanoseconds },
        };
        // It can only fail for times or descriptors that are none.
        let _ = timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &once);
    }
}
