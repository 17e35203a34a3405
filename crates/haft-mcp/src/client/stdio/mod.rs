//! A server that is a child process, over its standard input and output.
//!
//! One thread reads standard output and routes responses to the requests that wait; another drains standard error.
//! Requests are written by the thread that makes them.

mod incoming;
mod reader;
mod stderr;
mod writer;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::incoming::ServerOutput;
use self::writer::LineWriter;
use super::connection::{PreparedRequest, ServerConnection};
use super::deadline::Deadline;
use super::inbound::Inbound;
use super::{ClientError, ClientLimits, McpError, lock};
use crate::wire::RpcMessage;

/// How long a request that could not be written waits for the reason why the server has exited.
const EXIT_REASON_TIMEOUT: Duration = Duration::from_secs(1);

/// A server process, as its client needs it.
pub trait ProcessHandle: Send + Sync {
    /// A descriptor that becomes readable when the process has exited, where the system has one. Without it, the exit
    /// of a process whose pipes are held open by others goes unnoticed.
    fn exit_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Waits for the exit, at most for `timeout`. Returns its description, for example `exit status 3`.
    fn wait(&self, timeout: Duration) -> Option<String>;

    /// Sends SIGTERM to the process and its descendants.
    fn terminate(&self);

    /// Sends SIGKILL to the process and its descendants.
    fn kill(&self);
}

/// A server process and the parent's ends of its pipes.
pub struct ProcessPipes {
    /// Its standard input.
    pub stdin: OwnedFd,
    /// Its standard output.
    pub stdout: OwnedFd,
    /// Its standard error.
    pub stderr: OwnedFd,
    /// The process.
    pub process: Box<dyn ProcessHandle>,
}

/// The connection to a server process.
pub(super) struct StdioConnection {
    server: Arc<ServerOutput>,
    writer: LineWriter,
    threads: Mutex<Option<ReaderThreads>>,
}

/// The threads that read; closing `keep_running` stops them.
struct ReaderThreads {
    keep_running: OwnedFd,
    handles: Vec<JoinHandle<()>>,
}

impl StdioConnection {
    pub(super) fn new(
        pipes: ProcessPipes,
        limits: &ClientLimits,
        inbound: &Arc<Inbound>,
    ) -> Result<Self, ClientError> {
        let ProcessPipes { stdin, stdout, stderr, process } = pipes;
        let server = Arc::new(ServerOutput::new(process, limits.clone(), Arc::clone(inbound)));
        let connected = LineWriter::new(stdin)
            .and_then(|writer| Ok((writer, start_threads(&server, stdout, stderr)?)))
            .inspect_err(|_| server.process.kill());
        let (writer, threads) = connected?;
        Ok(Self { server, writer, threads: Mutex::new(Some(threads)) })
    }
}

fn start_threads(
    server: &Arc<ServerOutput>,
    stdout: OwnedFd,
    stderr: OwnedFd,
) -> Result<ReaderThreads, ClientError> {
    let failed = |error: &dyn std::fmt::Display| {
        ClientError::unreachable(format!("cannot start the reader of the server's output: {error}"))
    };
    let (stop, keep_running) = std::io::pipe().map_err(|error| failed(&error))?;
    let (stop, keep_running) = (OwnedFd::from(stop), OwnedFd::from(keep_running));
    let stop_stderr = stop.try_clone().map_err(|error| failed(&error))?;
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(|error| failed(&error))
    };
    let shared = Arc::clone(server);
    let drainer = spawn("mcp-stderr", Box::new(move || shared.stderr.drain(&stderr, &stop_stderr)))?;
    let shared = Arc::clone(server);
    let reader = spawn("mcp-reader", Box::new(move || reader::read_output(&shared, &stdout, &stop)))?;
    Ok(ReaderThreads { keep_running, handles: vec![drainer, reader] })
}

impl ServerConnection for StdioConnection {
    fn request(&self, request: &PreparedRequest, deadline: &Deadline<'_>) -> Result<Value, ClientError> {
        let response = self.server.pending.register(&request.id)?;
        let written = self.writer.write(&request.message().to_line(), &|| deadline.remaining(request.method));
        let outcome = match written {
            Ok(()) => response.wait(request.method, deadline),
            // If the process has exited, the reader is about to report how.
            Err(error) if error.kind == McpError::Disconnected => {
                match response.wait(request.method, &Deadline::after(EXIT_REASON_TIMEOUT, deadline.cancel)) {
                    Err(late) if late.kind == McpError::TimedOut => Err(error),
                    outcome => outcome,
                }
            }
            Err(error) => Err(error),
        };
        outcome.map_err(|error| self.server.explain(error))
    }

    fn send(&self, message: &RpcMessage, timeout: Duration) -> Result<(), ClientError> {
        let deadline = Instant::now() + timeout;
        self.writer.write(&message.to_line(), &|| {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let late = || ClientError::timed_out("the server does not read its input");
            (!remaining.is_zero()).then_some(remaining).ok_or_else(late)
        })
    }

    fn is_closed(&self) -> bool {
        self.server.pending.is_closed()
    }

    /// Closes standard input and waits; then SIGTERM, then SIGKILL, also for descendants that are left.
    fn close(&self) {
        let threads = lock(&self.threads).take();
        self.server.pending.close(ClientError::closed());
        self.writer.close();
        let (process, timeout) = (&self.server.process, self.server.limits.close_timeout);
        if threads.is_some() && process.wait(timeout).is_none() {
            process.terminate();
            process.wait(timeout);
        }
        process.kill();
        if let Some(ReaderThreads { keep_running, handles }) = threads {
            process.wait(timeout);
            drop(keep_running);
            for handle in handles {
                // A thread that panicked has ended, too.
                let _ = handle.join();
            }
        }
    }
}

impl Drop for StdioConnection {
    fn drop(&mut self) {
        self.close();
    }
}
