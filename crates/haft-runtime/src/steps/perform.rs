//! perform: the only impure step. It runs on the call's own thread, so a tool may block.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use haft_tool::{Cancel, ErrorKind, Output, Perform, ToolError, World};

/// Performs the call; a panic of the tool is an error.
pub(crate) fn perform(perform: Perform, world: &dyn World) -> Result<Output, ToolError> {
    unbroken(|| perform(world))
}

/// What a tool's own code gives, also when it panics.
pub(crate) fn unbroken<T>(work: impl FnOnce() -> Result<T, ToolError>) -> Result<T, ToolError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

/// Runs `work` to its end, or drops it as soon as it waits while nobody wants its result any more.
pub(crate) async fn unless_cancelled<T>(work: impl Future<Output = T>, cancel: &Cancel) -> Option<T> {
    before(work, cancel.cancelled()).await
}

/// The result of `work`, unless `limit` comes first.
pub(crate) async fn before<T>(work: impl Future<Output = T>, limit: impl Future<Output = ()>) -> Option<T> {
    let (mut work, mut limit) = (pin!(work), pin!(limit));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => limit.as_mut().poll(cx).map(|()| None),
    })
    .await
}

pub(crate) fn interrupted() -> ToolError {
    ToolError::new(ErrorKind::Interrupted, "The call was cancelled before it was done")
}

fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    let words =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    ToolError::internal(format!("The tool broke down: {}", words.unwrap_or("no reason given")))
}
