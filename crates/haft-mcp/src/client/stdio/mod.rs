//! A server that is a process, over its standard input and output.
//!
//! One thread reads what it writes and hands answers to those who wait, unless they read themselves; another drains what it
//! says on standard error. Whoever asks writes on its own thread.

mod outlet;
mod reader;
mod shared;
mod tail;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::outlet::Outlet;
use self::reader::Reader;
use self::shared::Shared;
use super::ear::Ear;
use super::link::{Asked, Link};
use super::patience::Patience;
use super::{ClientError, Limits, Trouble, lock};
use crate::wire::Message;

/// How long the reason of a broken pipe is waited for.
const REASON: Duration = Duration::from_secs(1);

/// A process as its client needs it.
pub trait Ended: Send + Sync {
    /// Something that becomes readable when the process has ended, where the system has that. A process that leaves its
    /// pipes to others is otherwise not known to be dead.
    fn signal(&self) -> Option<BorrowedFd<'_>>;

    /// Waits for its end, at most for `limit`; in words how it ended, for example `exit status 3`.
    fn wait(&self, limit: Duration) -> Option<String>;

    /// Asks it, and all that it has started, to end.
    fn terminate(&self);

    /// Ends it, and all that it has started.
    fn kill(&self);
}

/// A server's process and the ends of its pipes.
pub struct Pipes {
    /// Its standard input.
    pub input: OwnedFd,
    /// Its standard output.
    pub output: OwnedFd,
    /// Its standard error.
    pub errors: OwnedFd,
    /// The process itself.
    pub process: Box<dyn Ended>,
}

/// The way to a process.
pub(super) struct Stdio {
    shared: Arc<Shared>,
    outlet: Outlet,
    reader: Arc<Reader>,
    /// Its end stops the threads.
    threads: Mutex<Option<(OwnedFd, Vec<JoinHandle<()>>)>>,
}

impl Stdio {
    pub(super) fn new(pipes: Pipes, limits: &Limits, ear: &Arc<Ear>) -> Result<Self, ClientError> {
        let Pipes { input, output, errors, process } = pipes;
        let broken = |what: &str, error: &dyn std::fmt::Display| {
            ClientError::unreachable(format!("{what} for the server cannot be had: {error}"))
        };
        let outlet = Outlet::new(input).inspect_err(|_| process.kill())?;
        let shared = Arc::new(Shared::new(process, limits.clone(), Arc::clone(ear)));
        let stops = || {
            let (stop, go_on) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            Ok::<_, std::io::Error>((stop.try_clone()?, stop, go_on))
        };
        let (stop, also, go_on) =
            stops().map_err(|error| broken("a pipe", &error)).inspect_err(|_| shared.process.kill())?;
        // Whatever goes wrong from here on, the process does not outlive it.
        let reader = Arc::new(Reader::new(Arc::clone(&shared), output, stop));
        let mut link = Self { shared, outlet, reader, threads: Mutex::default() };
        let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
            thread.map_err(|error| broken("a thread", &error))
        };
        let shared = Arc::clone(&link.shared);
        let tail = start("mcp-errors", Box::new(move || shared.tail.drain(&errors, &also)))?;
        let reader = Arc::clone(&link.reader);
        let reader = start("mcp-reader", Box::new(move || reader.run()))?;
        link.threads = Mutex::new(Some((go_on, vec![tail, reader])));
        Ok(link)
    }
}

impl Link for Stdio {
    fn ask(&self, asked: &Asked, patience: &Patience<'_>) -> Result<Value, ClientError> {
        let waiting = self.shared.waiters.open(&asked.id, patience.has_an_end())?;
        let left = || patience.left(asked.method);
        let written = self.outlet.write(&asked.message().to_line(), &left);
        let outcome = match written {
            Ok(()) => {
                if patience.has_an_end() {
                    self.reader.read_for(&waiting);
                }
                waiting.wait(asked.method, patience)
            }
            // It may have died, and then there is more to be said about it.
            Err(error) if error.kind == Trouble::Ended => {
                match waiting.wait(asked.method, &Patience::of(REASON, patience.cancel)) {
                    Err(late) if late.kind == Trouble::Late => Err(error),
                    outcome => outcome,
                }
            }
            Err(error) => Err(error),
        };
        outcome.map_err(|error| self.shared.with_remarks(error))
    }

    fn tell(&self, message: &Message, limit: Duration) -> Result<(), ClientError> {
        let until = Instant::now() + limit;
        let left = || {
            let left = until.saturating_duration_since(Instant::now());
            let late = || ClientError::late("the server does not read its input");
            (!left.is_zero()).then_some(left).ok_or_else(late)
        };
        self.outlet.write(&message.to_line(), &left)
    }

    fn is_over(&self) -> bool {
        self.shared.waiters.is_over()
    }

    fn close(&self) {
        let threads = lock(&self.threads).take();
        self.shared.waiters.end(ClientError::new(Trouble::Closed, "the connection to the server was closed"));
        self.outlet.close();
        let (process, limit) = (&self.shared.process, self.shared.limits.close);
        if threads.is_some() && process.wait(limit).is_none() {
            process.terminate();
            process.wait(limit);
        }
        // Also for what it may have left behind.
        process.kill();
        if let Some((go_on, threads)) = threads {
            process.wait(limit);
            drop(go_on);
            for thread in threads {
                // A thread that broke down has ended, too.
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.close();
    }
}
