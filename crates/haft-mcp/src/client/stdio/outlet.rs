//! Where messages to a process go: whole lines, one at a time, and nobody waits for ever.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::super::{ClientError, Trouble, lock};

/// How often somebody who waits for room looks whether that is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// The writing end of a process's standard input.
pub(super) struct Outlet {
    state: Mutex<State>,
    free: Condvar,
}

struct State {
    input: Option<Arc<OwnedFd>>,
    busy: bool,
    /// The rest of a line whose writer had no more time. It goes first, or the stream would be no lines any more.
    rest: Vec<u8>,
}

/// How much time is left, or why there is none.
type Left<'a> = &'a dyn Fn() -> Result<Duration, ClientError>;

impl Outlet {
    pub(super) fn new(input: OwnedFd) -> Result<Self, ClientError> {
        rustix::io::ioctl_fionbio(&input, true).map_err(|error| {
            ClientError::unreachable(format!("the server's input cannot be set up: {error}"))
        })?;
        let state = State { input: Some(Arc::new(input)), busy: false, rest: Vec::new() };
        Ok(Self { state: Mutex::new(state), free: Condvar::new() })
    }

    /// Writes a line.
    pub(super) fn write(&self, line: &[u8], left: Left<'_>) -> Result<(), ClientError> {
        let mut turn = self.turn(left)?;
        let rest = std::mem::take(&mut turn.rest);
        let gone = self.push(&turn.input, &rest, left);
        match gone {
            (count, Ok(())) => debug_assert_eq!(count, rest.len()),
            (count, Err(error)) => {
                turn.rest = rest.get(count..).unwrap_or_default().to_vec();
                return Err(error);
            }
        }
        let (count, written) = self.push(&turn.input, line, left);
        if written.is_err() && count > 0 {
            turn.rest = line.get(count..).unwrap_or_default().to_vec();
        }
        written
    }

    /// Waits until nobody else writes.
    fn turn(&self, left: Left<'_>) -> Result<Turn<'_>, ClientError> {
        let mut state = lock(&self.state);
        loop {
            let Some(input) = state.input.clone() else { return Err(closed()) };
            if !state.busy {
                state.busy = true;
                let rest = std::mem::take(&mut state.rest);
                return Ok(Turn { outlet: self, input, rest });
            }
            let time = left()?.min(LOOK);
            state = self.free.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes as much as goes in the time that is left; how much that was.
    fn push(&self, input: &OwnedFd, bytes: &[u8], left: Left<'_>) -> (usize, Result<(), ClientError>) {
        let mut count = 0;
        while let Some(rest) = bytes.get(count..).filter(|rest| !rest.is_empty()) {
            match rustix::io::write(input, rest) {
                Ok(written) => count += written,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if lock(&self.state).input.is_none() {
                        return (count, Err(closed()));
                    }
                    let time = match left() {
                        Ok(time) => time.min(LOOK),
                        Err(error) => return (count, Err(error)),
                    };
                    let time = time.try_into().ok();
                    // Whatever comes of it, the next write says more.
                    let _ = poll(&mut [PollFd::new(input, PollFlags::OUT)], time.as_ref());
                }
                Err(error) => {
                    let why = format!("the server does not read its input any more: {error}");
                    return (count, Err(ClientError::new(Trouble::Ended, why)));
                }
            }
        }
        (count, Ok(()))
    }

    /// Lets the server know that nothing more will come.
    pub(super) fn close(&self) {
        lock(&self.state).input = None;
        self.free.notify_all();
    }
}

fn closed() -> ClientError {
    ClientError::new(Trouble::Closed, "the connection to the server was closed")
}

/// The right to write.
struct Turn<'a> {
    outlet: &'a Outlet,
    input: Arc<OwnedFd>,
    rest: Vec<u8>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.outlet.state);
        state.busy = false;
        state.rest = std::mem::take(&mut self.rest);
        self.outlet.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn no_time() -> Result<Duration, ClientError> {
        Err(ClientError::late("no time"))
    }

    fn time() -> Result<Duration, ClientError> {
        let long = Duration::from_mins(1);
        if long.is_zero() { no_time() } else { Ok(long) }
    }

    #[test]
    fn a_line_that_was_cut_off_is_finished_before_the_next_one() {
        let (reading, writing) = rustix::pipe::pipe().unwrap();
        let outlet = Outlet::new(writing).unwrap();
        let long = [vec![b'a'; 1 << 20], vec![b'\n']].concat();
        assert_eq!(outlet.write(&long, &no_time).unwrap_err().kind, Trouble::Late);
        assert_eq!(outlet.write(b"never\n", &no_time).unwrap_err().kind, Trouble::Late);
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            std::fs::File::from(reading).read_to_end(&mut all).unwrap();
            all
        });
        outlet.write(b"next\n", &time).unwrap();
        outlet.close();
        assert_eq!(outlet.write(b"late\n", &time).unwrap_err().kind, Trouble::Closed);
        drop(outlet);
        assert!(reader.join().unwrap() == [long.as_slice(), b"next\n"].concat());
    }

    #[test]
    fn nobody_waits_for_a_reader_that_is_gone() {
        let (reading, writing) = rustix::pipe::pipe().unwrap();
        let outlet = Outlet::new(writing).unwrap();
        drop(reading);
        assert_eq!(outlet.write(b"line\n", &time).unwrap_err().kind, Trouble::Ended);
    }

    #[test]
    fn lines_of_several_writers_stay_whole() {
        let (reading, writing) = rustix::pipe::pipe().unwrap();
        let outlet = Outlet::new(writing).unwrap();
        let reader = std::thread::spawn(move || {
            let mut all = String::new();
            std::fs::File::from(reading).read_to_string(&mut all).unwrap();
            all
        });
        std::thread::scope(|scope| {
            for letter in ["a", "b", "c", "d"] {
                let (line, outlet) = (letter.repeat(100_000) + "\n", &outlet);
                scope.spawn(move || (0..5).for_each(|_| outlet.write(line.as_bytes(), &time).unwrap()));
            }
        });
        drop(outlet);
        let all = reader.join().unwrap();
        assert_eq!(all.lines().count(), 20);
        assert!(
            all.lines()
                .all(|line| line.len() == 100_000 && line.bytes().all(|byte| byte == line.as_bytes()[0]))
        );
    }
}
