//! A thread that drives the connections, and waiting for its results.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use haft_tool::{Cancel, ToolError};
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A thread with a Tokio runtime, because the caller's thread may be driving one itself. Dropping it drops all tasks.
pub(super) struct RuntimeThread {
    handle: Handle,
    stop: Arc<Notify>,
}

impl RuntimeThread {
    pub(super) fn start() -> Result<Self, ToolError> {
        let start = || -> std::io::Result<Self> {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let (handle, stop) = (runtime.handle().clone(), Arc::new(Notify::new()));
            let stopped = Arc::clone(&stop);
            thread::Builder::new().name("haft-http".to_owned()).spawn(move || {
                runtime.block_on(stopped.notified());
                // Does not wait for name lookups, which cannot be cancelled.
                runtime.shutdown_background();
            })?;
            Ok(Self { handle, stop })
        };
        start().map_err(|error| ToolError::io("start a thread for HTTP", &error))
    }

    /// Runs `future` on the thread until it ends or the task is dropped.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> HttpTask<T> {
        HttpTask(self.handle.spawn(future))
    }
}

impl Drop for RuntimeThread {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}

/// A task that ends when this is dropped.
pub(super) struct HttpTask<T>(pub(super) JoinHandle<T>);

impl<T> Drop for HttpTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why a wait ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitError {
    Timeout,
    Cancelled,
}

/// Blocks the current thread until `future`, which another thread completes, is ready.
pub(super) fn wait_for<T>(
    future: impl Future<Output = T>,
    timeout: Duration,
    cancel: &Cancel,
) -> Result<T, WaitError> {
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    let (mut future, mut cancelled) = (pin!(future), pin!(cancel.cancelled()));
    let start = Instant::now();
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Ok(value);
        }
        if cancelled.as_mut().poll(&mut context).is_ready() {
            return Err(WaitError::Cancelled);
        }
        let left = timeout.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Err(WaitError::Timeout);
        }
        thread::park_timeout(left);
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
