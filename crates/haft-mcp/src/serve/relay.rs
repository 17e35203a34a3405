//! A baton that goes from thread to thread: whoever has it reads.
//!
//! While its holder is busy the baton lies there. The holder takes it up again if it still lies there; if that takes too
//! long, one of those who stand by does. To lay it down and take it up costs no wake-up, as long as somebody looks from
//! time to time anyway.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::peer::lock;

/// How long the baton lies before another takes it.
const MOMENT: Duration = Duration::from_millis(2);
/// How often somebody looks whether a baton lies there that is in use: for some 30 µs, about as long as whoever uses it may
/// have to leave its processor to the client.
const SHORTLY: usize = 1_500;
/// How many stand by at most; who comes in addition may go home.
const MOST_STANDING_BY: usize = 4;

/// The baton, if it lies there.
struct Lying<T> {
    baton: Option<T>,
    /// From when on anybody may take it.
    free: Instant,
    /// Whether it has been laid down since somebody last looked.
    moved: bool,
    /// Whether somebody will look by himself.
    watched: bool,
    closed: bool,
}

/// The baton and those who wait for it.
pub(super) struct Relay<T> {
    lying: Mutex<Lying<T>>,
    /// Has the one who watches look.
    bell: Condvar,
    /// Whether whoever has the baton waits for bytes, and so will not lay it down soon.
    waiting: AtomicBool,
    /// Held by the one who watches.
    watching: Mutex<()>,
    standing_by: AtomicUsize,
}

impl<T> Relay<T> {
    /// A relay whose baton lies there for the first who comes.
    pub(super) fn new(baton: T) -> Self {
        let (moved, watched, closed) = (false, false, false);
        Self {
            lying: Mutex::new(Lying { baton: Some(baton), free: Instant::now(), moved, watched, closed }),
            bell: Condvar::new(),
            waiting: AtomicBool::new(false),
            watching: Mutex::new(()),
            standing_by: AtomicUsize::new(0),
        }
    }

    /// Waits for the baton; none when there is no use in waiting.
    pub(super) fn stand_by(&self) -> Option<T> {
        if self.standing_by.fetch_add(1, Ordering::SeqCst) >= MOST_STANDING_BY {
            self.standing_by.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        let baton = self.watch();
        self.standing_by.fetch_sub(1, Ordering::SeqCst);
        baton
    }

    fn watch(&self) -> Option<T> {
        let _the_one_who_watches = lock(&self.watching);
        let mut lying = lock(&self.lying);
        loop {
            if lying.closed {
                return None;
            }
            let early = lying.free.saturating_duration_since(Instant::now());
            if early.is_zero() && lying.baton.is_some() {
                return lying.baton.take();
            }
            // While it goes to and fro, to look now and then is cheaper than to be called each time.
            lying.watched = lying.baton.is_some() || std::mem::take(&mut lying.moved);
            lying = if lying.watched {
                let early = if early.is_zero() { MOMENT } else { early };
                self.bell.wait_timeout(lying, early).unwrap_or_else(PoisonError::into_inner).0
            } else {
                self.bell.wait(lying).unwrap_or_else(PoisonError::into_inner)
            };
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
        let ring = {
            let mut lying = lock(&self.lying);
            (lying.baton, lying.free, lying.moved) = (Some(baton), free, true);
            let watched = std::mem::replace(&mut lying.watched, true);
            !for_a_moment || !watched
        };
        if ring {
            self.bell.notify_one();
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
        lock(&self.lying).closed = true;
        self.bell.notify_all();
    }
}
