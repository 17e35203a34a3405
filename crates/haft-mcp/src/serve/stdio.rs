//! One client over standard input and output.
//!
//! Whoever reads a request answers it, on the same thread: to wake another one costs more than most answers. So that a long
//! answer does not keep the next request waiting, somebody stands by to go on reading ([`Relay`]): at once for what is
//! known to take long, after a moment for the rest. Answers to requests that came together go together.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use haft_tool::{Cancel, ToolError};
use rustix::event::PollFlags;
use rustix::io::Errno;
use serde_json::Value;

use super::haste::{Haste, is_there};
use super::peer::{Outbox, Peer, lock};
use super::pipe::{Later, Pipe, wait_for};
use super::relay::Relay;
use super::server::Server;
use crate::wire::{INVALID_REQUEST, Incoming, Line, Lines, Message, PARSE, RpcError, Version};

/// The longest line that is read; arguments of a call are never longer.
const MOST_LINE_BYTES: usize = 64 << 20;
/// The most requests under way at once.
const MOST_AT_ONCE: usize = 256;
/// Where more bytes than this wait to be understood, two threads get through them faster than one.
const MUCH: usize = 1 << 10;
/// How long what is under way may take when the client has said its last.
const GRACE: Duration = Duration::from_secs(3);

/// Serves whoever is at the other end of these two until they leave.
pub fn serve_stdio(server: &Arc<Server>, input: OwnedFd, output: OwnedFd) -> Result<(), ToolError> {
    let peer = Peer::new("stdio");
    let pipe = Arc::new(Pipe::new(output, Arc::clone(server)));
    let outbox: Arc<dyn Outbox> = Arc::<Pipe>::clone(&pipe);
    peer.hear_at(Some(Arc::clone(&outbox)));
    let connection = Arc::new(Connection {
        server: Arc::clone(server),
        peer,
        outbox,
        later: Arc::new(Later(Arc::clone(&pipe))),
        pipe,
        relay: Relay::new(Inlet { input, lines: Lines::new(MOST_LINE_BYTES), haste: Haste::default() }),
        under_way: AtomicUsize::new(0),
        processors: std::thread::available_parallelism().map_or(1, Into::into),
        ended: Mutex::new(false),
        closed: AtomicBool::new(false),
        end: Condvar::new(),
    });
    connection.hire()?;
    connection.hire()?;
    connection.until_the_end();
    connection.server.close();
    Ok(())
}

/// Where requests come from.
struct Inlet {
    input: OwnedFd,
    lines: Lines,
    haste: Haste,
}

impl Inlet {
    /// The next line; none when there will be no more.
    fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.lines.take() {
                return Some(line);
            }
            match self.lines.read_from(&mut Descriptor(&self.input)) {
                Ok(0) | Err(_) => return self.lines.rest(),
                Ok(_) => {}
            }
        }
    }
}

struct Descriptor<'a>(&'a OwnedFd);

impl std::io::Read for Descriptor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match rustix::io::read(self.0, &mut *buffer) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait_for(self.0, PollFlags::IN)?,
                done => return Ok(done?),
            }
        }
    }
}

struct Connection {
    server: Arc<Server>,
    peer: Arc<Peer>,
    outbox: Arc<dyn Outbox>,
    /// The same, for answers that need not go alone.
    later: Arc<dyn Outbox>,
    pipe: Arc<Pipe>,
    relay: Relay<Inlet>,
    under_way: AtomicUsize,
    processors: usize,
    /// Whether the client has said its last, and the same for who looks often.
    ended: Mutex<bool>,
    closed: AtomicBool,
    end: Condvar,
}

impl Connection {
    /// One more thread to read and to answer.
    fn hire(self: &Arc<Self>) -> Result<(), ToolError> {
        let connection = Arc::clone(self);
        let started = std::thread::Builder::new().name("mcp".to_owned()).spawn(move || connection.work());
        started.map(drop).map_err(|error| ToolError::io("start a thread", &error))
    }

    /// A thread's whole life: stand by, read, answer, stand by again.
    fn work(self: &Arc<Self>) {
        while let Some(mut inlet) = self.relay.stand_by() {
            if !self.relay.somebody_stands_by() && self.hire().is_err() {
                // Then requests are answered one after the other, which is slower and not wrong.
            }
            // Whoever had it before is busy with something, and has perhaps kept what it said before that.
            self.pipe.flush();
            loop {
                let Some(line) = self.next_line(&mut inlet) else {
                    self.pipe.flush();
                    return self.close();
                };
                let Some((message, quick)) = self.understand(line) else { continue };
                if changes_what_follows(&message) {
                    self.server.handle(&self.peer, message, &self.outbox, &Cancel::new());
                    continue;
                }
                let running = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
                let much = inlet.lines.waiting() > MUCH;
                // Where many requests wait already and a processor is free, they are answered side by side.
                let share = much && running < self.processors && self.relay.somebody_stands_by();
                if !quick {
                    self.pipe.flush();
                }
                self.relay.put_down(inlet, quick && !share);
                let outbox = if quick { &self.later } else { &self.outbox };
                self.server.handle(&self.peer, message, outbox, &Cancel::new());
                let still_here = self.relay.pick_up();
                if still_here.is_none() {
                    // Who reads on may find the client's last word; until then this counts as under way.
                    self.pipe.flush();
                }
                self.finished();
                match still_here {
                    Some(still_here) => inlet = still_here,
                    None => break,
                }
            }
        }
    }

    /// The next line. Before anybody waits for one, everything is sent that was said.
    fn next_line(&self, inlet: &mut Inlet) -> Option<Line> {
        if let Some(line) = inlet.lines.take() {
            return Some(line);
        }
        if !is_there(&inlet.input) {
            self.pipe.flush();
            self.relay.waits(true);
            inlet.haste.look(&inlet.input);
        }
        let before = Instant::now();
        let line = inlet.next();
        inlet.haste.waited(before.elapsed());
        self.relay.waits(false);
        line
    }

    /// One message out of a line, and whether it will be dealt with at once. What makes no sense is answered here.
    fn understand(self: &Arc<Self>, line: Line) -> Option<(Message, bool)> {
        let refuse = |error: RpcError| {
            self.outbox.send(&Message::Response { id: None, outcome: Err(error) });
        };
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong => {
                let why = format!("Parse error: a line has more than {MOST_LINE_BYTES} bytes");
                refuse(RpcError::new(PARSE, why));
                return None;
            }
        };
        let message = match Incoming::read(&bytes) {
            Ok(Incoming::One(message)) => message,
            Ok(Incoming::Batch(all)) => {
                if self.peer.version() != Some(Version::V2025_03_26) {
                    let why = "Invalid request: a batch, which only revision 2025-03-26 has";
                    refuse(RpcError::new(INVALID_REQUEST, why));
                } else if self.is_full() {
                    refuse(too_many());
                } else {
                    self.batch(all);
                }
                return None;
            }
            Err(error) => {
                refuse(error);
                return None;
            }
        };
        let quick = match &message {
            Message::Request { id, method, params } => {
                if self.is_full() {
                    self.outbox.send(&Message::response(id.clone(), Err(too_many())));
                    return None;
                }
                self.is_quick(method, params)
            }
            _ => true,
        };
        Some((message, quick))
    }

    /// Several messages at once, answered one after the other; nobody else waits for them.
    fn batch(self: &Arc<Self>, all: Vec<Result<Message, RpcError>>) {
        let connection = Arc::clone(self);
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let work = move || {
            for message in all {
                match message {
                    Ok(message) => {
                        connection.server.handle(
                            &connection.peer,
                            message,
                            &connection.outbox,
                            &Cancel::new(),
                        );
                    }
                    Err(error) => {
                        connection.outbox.send(&Message::Response { id: None, outcome: Err(error) });
                    }
                }
            }
            connection.finished();
        };
        if std::thread::Builder::new().name("mcp-batch".to_owned()).spawn(work).is_err() {
            self.finished();
        }
    }

    fn is_full(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) >= MOST_AT_ONCE
    }

    fn is_quick(&self, method: &str, params: &Value) -> bool {
        self.server.service().is_quick(method, params)
    }

    /// The client has said its last.
    fn close(&self) {
        *lock(&self.ended) = true;
        self.closed.store(true, Ordering::SeqCst);
        self.relay.close();
        self.end.notify_all();
    }

    fn finished(&self) {
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        if self.closed.load(Ordering::SeqCst) {
            drop(lock(&self.ended));
            self.end.notify_all();
        }
    }

    /// Returns when the client has said its last and has its answers, or had time enough for them.
    fn until_the_end(&self) {
        let mut ended = lock(&self.ended);
        while !*ended {
            ended = self.end.wait(ended).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        self.server.left(&self.peer);
        let mut limit = Instant::now() + GRACE;
        let mut asked_to_stop = false;
        while self.under_way.load(Ordering::SeqCst) > 0 {
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                if asked_to_stop {
                    return;
                }
                self.peer.leave();
                (asked_to_stop, limit) = (true, Instant::now() + GRACE);
                continue;
            }
            let woken = self.end.wait_timeout(ended, left);
            ended = woken.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }
}

fn too_many() -> RpcError {
    let why =
        format!("{MOST_AT_ONCE} requests are under way, and there may be no more at once; wait for one");
    RpcError::new(INVALID_REQUEST, why)
}

/// Whether what comes next is understood in the light of this, so that it has to wait; it is never for long.
fn changes_what_follows(message: &Message) -> bool {
    match message {
        Message::Request { method, .. } => matches!(method.as_str(), "initialize" | "logging/setLevel"),
        Message::Notification { .. } | Message::Response { .. } => true,
    }
}

/// Haft's own standard input and output, for a protocol that needs both to itself.
pub fn stdio() -> Result<(OwnedFd, OwnedFd), ToolError> {
    let own = |fd: std::os::fd::BorrowedFd<'_>| {
        fd.as_fd()
            .try_clone_to_owned()
            .map_err(|error| ToolError::io("take over standard input and output", &error))
    };
    Ok((own(rustix::stdio::stdin())?, own(rustix::stdio::stdout())?))
}
