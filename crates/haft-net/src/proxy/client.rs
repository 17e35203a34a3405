//! The talk with a client before its connection stands: bounded in bytes and in time.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::tunnel::{self, Body, Opening};
use super::wait::{Ear, Stop};

/// How long a client may take to say all of what it wants.
const SAYING: Duration = Duration::from_secs(10);
/// The same when it will be turned away anyhow.
const SAYING_IN_VAIN: Duration = Duration::from_secs(1);
/// How long it may take to hear the answer.
const HEARING: Duration = Duration::from_secs(10);
/// How long and how much a client may go on talking after it has got its answer.
const TRAILING: Duration = Duration::from_secs(1);
const TRAILING_BYTES: usize = 1024 * 1024;

pub(super) struct Client {
    stream: TcpStream,
    end: Ear,
    deadline: Instant,
    /// What was read and not yet taken.
    held: Vec<u8>,
}

/// A request head as far as it came.
pub(super) enum Head {
    Whole(Vec<u8>),
    TooLong,
}

impl Client {
    /// The client behind `stream`; `in_vain` if it will get no connection.
    pub(super) fn new(stream: TcpStream, end: Ear, in_vain: bool) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let time = if in_vain { SAYING_IN_VAIN } else { SAYING };
        Ok(Self { stream, end, deadline: Instant::now() + time, held: Vec::new() })
    }

    /// The first byte, which tells the protocol; it is not taken.
    pub(super) fn first(&mut self) -> Result<u8, Stop> {
        loop {
            if let Some(first) = self.held.first() {
                return Ok(*first);
            }
            self.read_more()?;
        }
    }

    /// Takes the next `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<Vec<u8>, Stop> {
        while self.held.len() < count {
            self.read_more()?;
        }
        let rest = self.held.split_off(count);
        Ok(std::mem::replace(&mut self.held, rest))
    }

    /// Takes all up to and with the first empty line, if that is at most `limit` bytes.
    pub(super) fn head(&mut self, limit: usize) -> Result<Head, Stop> {
        let mut searched = 0_usize;
        loop {
            let from = searched.saturating_sub(3);
            if let Some(at) = end_of_head(&self.held[from..]).map(|at| from + at) {
                return if at <= limit { self.take(at).map(Head::Whole) } else { Ok(Head::TooLong) };
            }
            if self.held.len() > limit {
                return Ok(Head::TooLong);
            }
            searched = self.held.len();
            self.read_more()?;
        }
    }

    /// Says all of `bytes`.
    pub(super) fn say(&mut self, mut bytes: &[u8]) -> Result<(), Stop> {
        let deadline = Instant::now() + HEARING;
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.end.wait([Some((self.stream.as_fd(), PollFlags::OUT))], Some(deadline))?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Stop::Gone),
            }
        }
        Ok(())
    }

    /// Says `bytes` and hangs up.
    pub(super) fn last_word(mut self, bytes: &[u8]) {
        if self.say(bytes).is_ok() && self.stream.shutdown(Shutdown::Write).is_ok() {
            self.hear_out();
        }
    }

    /// Joins the client with `upstream` until both have ended; `head` goes first, then what the client said early.
    pub(super) fn join(mut self, upstream: &TcpStream, head: Vec<u8>, body: Body) {
        let early = std::mem::take(&mut self.held);
        tunnel::run(&self.stream, upstream, Opening { head, early }, body, &self.end);
        self.hear_out();
    }

    /// Lets the client hang up first: to close with bytes unread would reset the connection, and the end of the
    /// answer might be lost with it.
    fn hear_out(&mut self) {
        self.deadline = Instant::now() + TRAILING;
        let mut trailing = 0;
        while trailing < TRAILING_BYTES && self.read_more().is_ok() {
            trailing += self.held.len();
            self.held.clear();
        }
    }

    fn read_more(&mut self) -> Result<(), Stop> {
        let mut buffer = [0; 8 * 1024];
        loop {
            self.end.wait([Some((self.stream.as_fd(), PollFlags::IN))], Some(self.deadline))?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Stop::Gone),
                Ok(count) => {
                    self.held.extend_from_slice(&buffer[..count]);
                    return Ok(());
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => return Err(Stop::Gone),
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Also if a fork of Haft still holds a copy of the descriptor.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Where the head ends; a head of bare line feeds ends too, so that it is refused now and not when its time is up.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let crlf = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
    let lf = bytes.windows(2).position(|two| two == b"\n\n").map(|at| at + 2);
    crlf.into_iter().chain(lf).min()
}
