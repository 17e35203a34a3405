//! Two sockets joined: bytes both ways, each way ending on its own.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::wait::{Ear, Want};

/// As much as one read takes.
const READ: usize = 64 * 1024;
/// How long one way may be silent after the other has ended: who hung up altogether looks the same at first.
const ALONE: Duration = Duration::from_mins(2);

/// How much of what the client says belongs to its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// All, until it hangs up.
    Open,
    /// So many bytes; what comes after them is dropped.
    Exactly(u64),
}

/// What the server gets before anything that the client has still to say.
pub(super) struct Opening {
    /// Said on the client's behalf; not a part of the body.
    pub(super) head: Vec<u8>,
    /// What the client already said.
    pub(super) early: Vec<u8>,
}

/// Joins both until both have ended, one fails or the proxy ends.
pub(super) fn run(client: &TcpStream, upstream: &TcpStream, opening: Opening, body: Body, end: &Ear) {
    // Errors end the tunnel; there is nobody to tell but the two sides, and the hang-up tells them.
    let _ = join(client, upstream, opening, body, end);
    let _ = upstream.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Write);
}

fn join(client: &TcpStream, upstream: &TcpStream, opening: Opening, body: Body, end: &Ear) -> io::Result<()> {
    upstream.set_nonblocking(true)?;
    upstream.set_nodelay(true)?;
    let mut up = Way::new(client, upstream, body);
    up.open_with(opening);
    let mut down = Way::new(upstream, client, Body::Open);
    while !(up.ended && down.ended) {
        let alone = (up.ended || down.ended).then(|| Instant::now() + ALONE);
        let Ok([up_can, down_can]) = end.wait([up.want(), down.want()], alone) else {
            return Ok(());
        };
        if up_can {
            up.step()?;
        }
        if down_can {
            down.step()?;
        }
        // The server has said all it will say to this request; HTTP's client need not hang up first.
        if down.ended && body != Body::Open {
            return Ok(());
        }
    }
    Ok(())
}

/// The bytes of one direction.
struct Way<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    buffer: Vec<u8>,
    /// What of the buffer is read and not yet written.
    pending: std::ops::Range<usize>,
    body: Body,
    ended: bool,
}

impl<'a> Way<'a> {
    fn new(from: &'a TcpStream, to: &'a TcpStream, body: Body) -> Self {
        Self { from, to, pending: 0..0, buffer: Vec::new(), body, ended: false }
    }

    fn open_with(&mut self, opening: Opening) {
        let Opening { head, mut early } = opening;
        early.truncate(self.due(early.len()));
        self.buffer = head;
        self.buffer.append(&mut early);
        self.pending = 0..self.buffer.len();
    }

    /// What it waits for: never more than one thing, so that a side that hung up cannot make the loop spin.
    fn want(&self) -> Option<Want<'_>> {
        if self.ended {
            None
        } else if self.pending.is_empty() {
            Some((self.from.as_fd(), PollFlags::IN))
        } else {
            Some((self.to.as_fd(), PollFlags::OUT))
        }
    }

    fn step(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            self.buffer.resize(READ, 0);
            match self.from.read(&mut self.buffer) {
                Ok(0) => {
                    self.ended = true;
                    // Many servers take a half-closed request for an abandoned one; its length has told them enough.
                    if self.body == Body::Open {
                        let _ = self.to.shutdown(Shutdown::Write);
                    }
                    return Ok(());
                }
                Ok(count) => self.pending = 0..self.due(count),
                Err(error) if passing(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        while !self.pending.is_empty() {
            match self.to.write(&self.buffer[self.pending.clone()]) {
                Ok(written) => self.pending.start += written,
                Err(error) if passing(&error) => return Ok(()),
                // It listens no more, but what it said before may still be on its way through the other direction.
                Err(_) => {
                    self.ended = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// How many of the next `count` bytes are to be passed on.
    fn due(&mut self, count: usize) -> usize {
        match &mut self.body {
            Body::Open => count,
            Body::Exactly(left) => {
                let due = usize::try_from(*left).map_or(count, |left| left.min(count));
                *left -= due as u64;
                due
            }
        }
    }
}

fn passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
