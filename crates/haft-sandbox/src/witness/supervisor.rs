//! One thread per command that answers the calls of all its processes.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_policy::Guard;
use haft_tool::lock;
use rustix::event::Timespec;
use rustix::io::Errno;

use super::census::Census;
use super::denials::Denials;
use super::notify::{Arrived, Call, Listener};
use super::paths::{Dirs, Found, Judge, Spot};
use super::places::{Area, Places};
use super::recorder::Recorder;
use super::rights::Rights;
use super::target::{Target, Umasks};

/// How often the supervisor looks up when nobody calls.
const LOOK_UP: Duration = Duration::from_millis(40);

/// Commands of one process of Haft take turns: what one moves, another may be about to write to.
static TURN: Mutex<()> = Mutex::new(());

/// What a call is answered with.
pub(super) enum Answer {
    /// The kernel does the call; Landlock holds it.
    GoOn,
    /// The call has been done on the program's behalf.
    Done(i64),
    /// The call has failed, or is refused.
    Fail(Errno),
    /// The program gets this descriptor.
    Descriptor { fd: OwnedFd, close_on_exec: bool },
    /// Another thread answers: the call may block.
    Later,
}

impl From<Errno> for Answer {
    fn from(error: Errno) -> Self {
        Self::Fail(error)
    }
}

impl From<Result<(), Errno>> for Answer {
    fn from(result: Result<(), Errno>) -> Self {
        match result {
            Ok(()) => Self::Done(0),
            Err(error) => Self::Fail(error),
        }
    }
}

/// Everything the witness of one command knows.
pub(super) struct Supervisor {
    pub(super) listener: Arc<Listener>,
    pub(super) places: Places,
    pub(super) recorder: Recorder,
    pub(super) denials: Denials,
    pub(super) dirs: Dirs,
    pub(super) umasks: Umasks,
    /// The umask that this thread has now.
    pub(super) umask: Option<rustix::fs::Mode>,
    pub(super) census: Census,
    pub(super) rights: Rights,
    pub(super) network: super::Reach,
    /// The ports that this command serves.
    pub(super) ports: Vec<u16>,
    /// The terminals that this command made.
    pub(super) terminals: Vec<u32>,
    /// Whether the command has Haft's own streams.
    pub(super) inherits: bool,
    /// Whether nobody waits for what is left.
    pub(super) stop: Arc<AtomicBool>,
}

struct Judging<'a>(&'a Places, &'a Recorder);

impl Judge for Judging<'_> {
    fn area(&self, path: &Path) -> Area {
        self.0.area(path)
    }

    fn is_whole(&self, path: &Path) -> bool {
        self.0.is_whole(path)
    }

    fn is_new(&self, path: &Path) -> bool {
        self.1.is_new(path)
    }

    fn is_made(&self, path: &Path) -> bool {
        self.1.is_made(path)
    }
}

impl Supervisor {
    /// What a call in a directory of the session's own is answered with: Landlock lets it be written.
    pub(super) fn is_scratch(spot: &Spot) -> bool {
        spot.dir.area == Area::Scratch
    }

    /// Answers calls until no process of the command is left.
    pub(super) fn run(&mut self) {
        let patience = Timespec::try_from(LOOK_UP).unwrap_or_default();
        loop {
            match self.listener.next(patience) {
                Arrived::Call(call) => self.take(&call),
                Arrived::Nothing if self.stop.load(Ordering::SeqCst) => break,
                Arrived::Nothing => {}
                Arrived::End => break,
            }
            self.census.look(&self.places.scope.workspace);
        }
    }

    fn take(&mut self, call: &Call) {
        let answer = {
            let _turn = lock(&TURN);
            self.perform(call).unwrap_or_else(Answer::Fail)
        };
        match answer {
            Answer::GoOn => self.listener.go_on(call.id),
            Answer::Done(value) => self.listener.answer(call.id, Ok(value)),
            Answer::Fail(error) => self.listener.answer(call.id, Err(error)),
            Answer::Descriptor { fd, close_on_exec } => {
                self.listener.hand_over(call.id, fd, close_on_exec);
            }
            Answer::Later => {}
        }
    }

    /// Where a path of the program leads, its last name not followed.
    pub(super) fn find(&mut self, call: &Call, base: i32, path: &[u8]) -> Result<Found, Errno> {
        let found = self.dirs.find(Target::of(call), base, path, &Judging(&self.places, &self.recorder))?;
        // What was read may have been another process's memory if the caller is gone.
        if self.listener.is_waiting(call.id) { Ok(found) } else { Err(Errno::SRCH) }
    }

    /// The same, with links followed.
    pub(super) fn find_through(&mut self, call: &Call, base: i32, path: &[u8]) -> Result<Found, Errno> {
        let found = self.find(call, base, path)?;
        self.follow(call, found)
    }

    pub(super) fn follow(&mut self, call: &Call, found: Found) -> Result<Found, Errno> {
        self.dirs.follow(found, Target::of(call), &Judging(&self.places, &self.recorder))
    }

    /// The spot of what a descriptor holds.
    pub(super) fn spot_of(&mut self, fd: &OwnedFd) -> Result<Spot, Errno> {
        self.dirs.of_descriptor(fd, &Judging(&self.places, &self.recorder))
    }

    /// Whether the scope lets the entry at `spot` be changed, guards apart. A refusal is noted.
    pub(super) fn may_change(&mut self, what: &str, spot: &Spot) -> bool {
        let path = spot.path();
        let area = if spot.dir.whole { spot.dir.area } else { self.places.area(path) };
        let allowed = match area {
            Area::Root | Area::Scratch => true,
            Area::Temp => self.places.may_change_temporary(path, |entry| entry.symlink_metadata().is_ok()),
            Area::Outside => false,
        };
        if !allowed {
            let (rule, allow) = self.places.why_outside(path);
            self.denials.add(what, path.display().to_string(), rule, allow);
        }
        allowed
    }

    /// Refuses a guarded spot, and says so.
    pub(super) fn refuse_guarded(&mut self, what: &str, path: &Path, guard: Guard, detail: &str) -> Errno {
        let rule = if detail.is_empty() {
            guard.reason().to_owned()
        } else {
            format!("{} ({detail})", guard.reason())
        };
        let allow = Some(format!("--allow-write {}", path.display()));
        self.denials.add(what, path.display().to_string(), rule, allow);
        Errno::ACCESS
    }

    /// Takes on the umask of the thread that calls.
    pub(super) fn with_umask_of(&mut self, call: &Call) {
        let mask = self.umasks.of(Target::of(call));
        if self.umask != Some(mask) {
            rustix::process::umask(mask);
            self.umask = Some(mask);
        }
    }

    /// Keeps what stands at a spot, where changes are witnessed.
    pub(super) fn touch(&mut self, spot: &Spot) -> Result<(), Errno> {
        match spot.dir.area {
            Area::Root => self.recorder.touch(spot),
            _ => Ok(()),
        }
    }

    /// Keeps that nothing stands at a spot, where somebody has just looked.
    pub(super) fn touch_absent(&mut self, spot: &Spot) -> Result<(), Errno> {
        match spot.dir.area {
            Area::Root => self.recorder.touch_absent(spot),
            _ => Ok(()),
        }
    }

    /// Says that a path or a secret was refused to be read.
    pub(super) fn refuse_read(&mut self, path: &Path) -> Errno {
        let place = path.display().to_string();
        self.denials.add("read", place, "it may hold secrets", Some("--allow-read PATH".to_owned()));
        Errno::ACCESS
    }
}
