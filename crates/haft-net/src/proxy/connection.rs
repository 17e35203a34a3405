//! A client's connection before its tunnel: reads and writes bounded in bytes and time.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::tunnel::{self, BodyLength, TunnelStart};
use super::wake::{WaitEnd, WakeReceiver};

/// How long a client may take to send its request.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The same if it will be refused because of too many connections.
pub(super) const BUSY_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long and how much a client may send after its response.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_LINGER_BYTES: usize = 1 << 20;
const BUFFER_BYTES: usize = 8 << 10;

pub(super) struct ClientConnection {
    stream: TcpStream,
    stop: WakeReceiver,
    deadline: Instant,
    /// What was received and not taken yet.
    received: Vec<u8>,
}

/// The head of a request.
pub(super) enum RequestHead {
    Complete(Vec<u8>),
    TooLong,
}

impl ClientConnection {
    pub(super) fn new(stream: TcpStream, stop: WakeReceiver, timeout: Duration) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, stop, deadline: Instant::now() + timeout, received: Vec::new() })
    }

    /// The first byte, which shows the protocol; it is not taken.
    pub(super) fn peek(&mut self) -> Result<u8, WaitEnd> {
        loop {
            if let Some(first) = self.received.first() {
                return Ok(*first);
            }
            self.read_more()?;
        }
    }

    /// Takes the next `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<Vec<u8>, WaitEnd> {
        while self.received.len() < count {
            self.read_more()?;
        }
        let rest = self.received.split_off(count);
        Ok(std::mem::replace(&mut self.received, rest))
    }

    /// Takes everything up to and including the first empty line, if that is at most `limit` bytes.
    pub(super) fn take_head(&mut self, limit: usize) -> Result<RequestHead, WaitEnd> {
        let mut searched = 0_usize;
        loop {
            let from = searched.saturating_sub(3);
            if let Some(end) = end_of_head(&self.received[from..]).map(|end| from + end) {
                return if end <= limit {
                    self.take(end).map(RequestHead::Complete)
                } else {
                    Ok(RequestHead::TooLong)
                };
            }
            if self.received.len() > limit {
                return Ok(RequestHead::TooLong);
            }
            searched = self.received.len();
            self.read_more()?;
        }
    }

    /// Sends all of `bytes`.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<(), WaitEnd> {
        let deadline = Instant::now() + RESPONSE_TIMEOUT;
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.stop.poll([Some((self.stream.as_fd(), PollFlags::OUT))], Some(deadline))?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(WaitEnd::Closed),
            }
        }
        Ok(())
    }

    /// Sends `bytes` and closes the connection.
    pub(super) fn finish(mut self, bytes: &[u8]) {
        if self.send(bytes).is_ok() && self.stream.shutdown(Shutdown::Write).is_ok() {
            self.linger();
        }
    }

    /// Connects the client with `upstream` until both have ended; `head` goes first, then what the client sent early.
    pub(super) fn tunnel(mut self, upstream: &TcpStream, head: Vec<u8>, body: BodyLength) {
        let received = std::mem::take(&mut self.received);
        tunnel::run(&self.stream, upstream, TunnelStart { head, received }, body, &self.stop);
        self.linger();
    }

    /// Lets the client close first: closing with unread bytes resets the connection, and the end of the response could be
    /// lost.
    fn linger(&mut self) {
        self.deadline = Instant::now() + LINGER_TIMEOUT;
        let mut total = 0;
        while total < MAX_LINGER_BYTES && self.read_more().is_ok() {
            total += self.received.len();
            self.received.clear();
        }
    }

    fn read_more(&mut self) -> Result<(), WaitEnd> {
        let mut buffer = [0; BUFFER_BYTES];
        loop {
            self.stop.poll([Some((self.stream.as_fd(), PollFlags::IN))], Some(self.deadline))?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(WaitEnd::Closed),
                Ok(count) => {
                    self.received.extend_from_slice(&buffer[..count]);
                    return Ok(());
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => return Err(WaitEnd::Closed),
            }
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        // Closes it even if a forked child still holds a copy of the descriptor.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Where the head ends. A head with bare line feeds ends too, so that it is refused at once and not at the timeout.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let crlf = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
    let lf = bytes.windows(2).position(|two| two == b"\n\n").map(|at| at + 2);
    crlf.into_iter().chain(lf).min()
}
