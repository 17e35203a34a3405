//! One client over standard input and output.
//!
//! The calling thread reads. It handles what never blocks (responses, notifications, the handshake) itself, so that
//! workers may wait for the client's answers; every other request runs on a worker. Workers write their answers through
//! one [`LineOutput`].

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use haft_tool::{Cancel, ToolError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::peer::{ClientPeer, MessageSink};
use super::server::{McpServer, PendingRequest, RequestAnswer};
use super::stdout::LineOutput;
use super::workers::WorkerPool;
use crate::wire::{
    INVALID_REQUEST, InputLine, LineSplitter, PARSE_ERROR, ProtocolVersion, RpcError, RpcInput, RpcMessage,
};

/// The longest accepted line.
const MAX_LINE_BYTES: usize = 64 << 20;
/// Requests that may be in progress at once.
const MAX_CONCURRENT_REQUESTS: usize = 256;
/// How long requests may go on after EOF, and again after they were cancelled.
const GRACE_PERIOD: Duration = Duration::from_secs(3);

/// Serves one client until EOF on `input`, or until `stop` is readable, and until its requests have finished or have used up
/// their grace period. A client that has closed `input` and does not read `output` gets no more than that period.
pub fn serve_stdio(
    server: &Arc<McpServer>,
    input: OwnedFd,
    output: OwnedFd,
    stop: OwnedFd,
) -> Result<(), ToolError> {
    let watched = input.try_clone().map_err(|error| ToolError::io(DUPLICATE, &error))?;
    let connection = StdioServer::new(server, LineOutput::new(output, watched, GRACE_PERIOD));
    let mut lines = LineSplitter::new(MAX_LINE_BYTES);
    let mut input = InputReader { input, stop };
    while let Some(line) = next_line(&mut lines, &mut input) {
        connection.receive(line);
    }
    connection.finish();
    Ok(())
}

const DUPLICATE: &str = "duplicate standard input and output";

/// The next line, or `None` at EOF. A read error counts as EOF.
fn next_line(lines: &mut LineSplitter, input: &mut InputReader) -> Option<InputLine> {
    loop {
        if let Some(line) = lines.take() {
            return Some(line);
        }
        match lines.read_from(input) {
            Ok(0) | Err(_) => return lines.rest(),
            Ok(_) => {}
        }
    }
}

struct InputReader {
    input: OwnedFd,
    /// The input ends when this is readable.
    stop: OwnedFd,
}

impl std::io::Read for InputReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let mut polled =
                [PollFd::new(&self.input, PollFlags::IN), PollFd::new(&self.stop, PollFlags::IN)];
            match poll(&mut polled, None) {
                Ok(_) if !polled[1].revents().is_empty() => return Ok(0),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            match rustix::io::read(&self.input, &mut *buffer) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                result => return Ok(result?),
            }
        }
    }
}

struct StdioServer {
    server: Arc<McpServer>,
    peer: Arc<ClientPeer>,
    output: Arc<dyn MessageSink>,
    workers: WorkerPool<PendingRequest, RequestAnswer>,
}

impl StdioServer {
    fn new(server: &Arc<McpServer>, output: LineOutput) -> Self {
        let output: Arc<dyn MessageSink> = Arc::new(output);
        let peer = ClientPeer::new("stdio");
        peer.set_sink(Some(Arc::clone(&output)));
        let workers = WorkerPool::new(MAX_CONCURRENT_REQUESTS, PendingRequest::respond, RequestAnswer::send);
        Self { server: Arc::clone(server), peer, output, workers }
    }

    fn receive(&self, line: InputLine) {
        let bytes = match line {
            InputLine::Whole(bytes) => bytes,
            InputLine::TooLong => {
                let why = format!("Parse error: the line is longer than {MAX_LINE_BYTES} bytes");
                return self.send_error(RpcError::new(PARSE_ERROR, why));
            }
        };
        match RpcInput::read(&bytes) {
            Ok(RpcInput::Single(message)) => self.dispatch(message),
            Ok(RpcInput::Batch(_)) if self.peer.version() != Some(ProtocolVersion::V2025_03_26) => {
                let why = "Invalid request: only protocol version 2025-03-26 has batches";
                self.send_error(RpcError::new(INVALID_REQUEST, why));
            }
            Ok(RpcInput::Batch(messages)) => {
                for message in messages {
                    match message {
                        Ok(message) => self.dispatch(message),
                        Err(invalid) => self.send(&invalid.into_response()),
                    }
                }
            }
            Err(invalid) => self.send(&invalid.into_response()),
        }
    }

    fn dispatch(&self, message: RpcMessage) {
        let request = self.server.begin(&self.peer, message, &self.output, &Cancel::new());
        if let Some(Err(refused)) = request.map(|request| self.workers.submit(request)) {
            let why = format!(
                "Too many requests are in progress (at most {MAX_CONCURRENT_REQUESTS}). Wait for one to end."
            );
            refused.refuse(RpcError::new(INVALID_REQUEST, why));
        }
    }

    /// Reports an error that belongs to no request.
    fn send_error(&self, error: RpcError) {
        self.send(&RpcMessage::Response { id: None, outcome: Err(error) });
    }

    fn send(&self, message: &RpcMessage) {
        self.output.send(message);
    }

    /// Waits for the requests in progress; those that exceed the grace period are cancelled.
    fn finish(self) {
        self.server.disconnect(&self.peer);
        if !self.workers.wait_finished(GRACE_PERIOD) {
            self.peer.cancel_all();
            self.server.cancel_tasks();
            self.workers.wait_finished(GRACE_PERIOD);
        }
        self.server.close();
    }
}

/// Duplicates of this process's standard input and output.
pub fn stdio() -> Result<(OwnedFd, OwnedFd), ToolError> {
    let duplicate = |fd: std::os::fd::BorrowedFd<'_>| {
        fd.as_fd().try_clone_to_owned().map_err(|error| ToolError::io(DUPLICATE, &error))
    };
    Ok((duplicate(rustix::stdio::stdin())?, duplicate(rustix::stdio::stdout())?))
}
