//! Copying between two sockets in both directions, each direction ending on its own.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::wake::{PollEvent, WakeReceiver};

const BUFFER_BYTES: usize = 64 << 10;
/// How long one direction may be idle after the other has ended: a peer that is gone looks like one that only stopped
/// sending.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_mins(2);

/// How many bytes of the client belong to its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyLength {
    /// All until EOF.
    UntilEof,
    /// This many; later ones are dropped.
    Bytes(u64),
}

/// What is sent to the server first.
pub(super) struct TunnelStart {
    /// Not a part of the body.
    pub(super) head: Vec<u8>,
    /// What the client has already sent after its head.
    pub(super) received: Vec<u8>,
}

/// Copies until both directions have ended, one fails or the proxy stops.
pub(super) fn run(
    client: &TcpStream,
    upstream: &TcpStream,
    start: TunnelStart,
    body: BodyLength,
    stop: &WakeReceiver,
) {
    // An error ends the tunnel; both sides see the closed connection.
    let _ = copy_both(client, upstream, start, body, stop);
    let _ = upstream.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Write);
}

fn copy_both(
    client: &TcpStream,
    upstream: &TcpStream,
    start: TunnelStart,
    body: BodyLength,
    stop: &WakeReceiver,
) -> io::Result<()> {
    upstream.set_nonblocking(true)?;
    upstream.set_nodelay(true)?;
    let mut up = Direction::new(client, upstream, body);
    up.start_with(start);
    let mut down = Direction::new(upstream, client, BodyLength::UntilEof);
    while !(up.ended && down.ended) {
        let deadline = (up.ended || down.ended).then(|| Instant::now() + HALF_CLOSED_TIMEOUT);
        let Ok([up_ready, down_ready]) = stop.poll([up.event(), down.event()], deadline) else {
            return Ok(());
        };
        if up_ready {
            up.step()?;
        }
        if down_ready {
            down.step()?;
        }
        // The response to a request of known length is complete, even if the client keeps its side open.
        if down.ended && body != BodyLength::UntilEof {
            return Ok(());
        }
    }
    Ok(())
}

/// One direction.
struct Direction<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    buffer: Vec<u8>,
    /// The part of the buffer that is not written yet.
    unwritten: Range<usize>,
    body: BodyLength,
    ended: bool,
}

impl<'a> Direction<'a> {
    fn new(from: &'a TcpStream, to: &'a TcpStream, body: BodyLength) -> Self {
        Self { from, to, unwritten: 0..0, buffer: Vec::new(), body, ended: false }
    }

    fn start_with(&mut self, start: TunnelStart) {
        let TunnelStart { head, mut received } = start;
        received.truncate(self.take_from_body(received.len()));
        self.buffer = [head, received].concat();
        self.unwritten = 0..self.buffer.len();
    }

    /// The event it waits for: only one at a time, so that a closed peer cannot make the loop spin.
    fn event(&self) -> Option<PollEvent<'_>> {
        if self.ended {
            None
        } else if self.unwritten.is_empty() {
            Some((self.from.as_fd(), PollFlags::IN))
        } else {
            Some((self.to.as_fd(), PollFlags::OUT))
        }
    }

    fn step(&mut self) -> io::Result<()> {
        if self.unwritten.is_empty() {
            self.buffer.resize(BUFFER_BYTES, 0);
            match self.from.read(&mut self.buffer) {
                Ok(0) => {
                    self.ended = true;
                    // Many servers take a half-closed request for an aborted one; a known length needs no EOF.
                    if self.body == BodyLength::UntilEof {
                        let _ = self.to.shutdown(Shutdown::Write);
                    }
                    return Ok(());
                }
                Ok(count) => self.unwritten = 0..self.take_from_body(count),
                Err(error) if is_retryable(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        while !self.unwritten.is_empty() {
            match self.to.write(&self.buffer[self.unwritten.clone()]) {
                Ok(written) => self.unwritten.start += written,
                Err(error) if is_retryable(&error) => return Ok(()),
                // It no longer reads, but what it sent before may still be copied in the other direction.
                Err(_) => {
                    self.ended = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// How many of the next `count` bytes belong to the body.
    fn take_from_body(&mut self, count: usize) -> usize {
        match &mut self.body {
            BodyLength::UntilEof => count,
            BodyLength::Bytes(left) => {
                let taken = usize::try_from(*left).map_or(count, |left| left.min(count));
                *left -= taken as u64;
                taken
            }
        }
    }
}

fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
