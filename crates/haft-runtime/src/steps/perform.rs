//! perform: the only impure step, on a thread of its own so that a tool may block.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use haft_tool::{Cancel, ErrorKind, Output, Prepared, ToolError, World};
use haft_world::LocalWorld;

/// Performs the call and gives its result, also when the tool panics or the call is cancelled.
pub(crate) async fn perform(
    prepared: Box<dyn Prepared>,
    world: Arc<LocalWorld>,
) -> Result<Output, ToolError> {
    let handle = tokio::runtime::Handle::current();
    let work = move || {
        let cancel = world.cancelled().clone();
        let performed = handle.block_on(unless_cancelled(prepared.perform(world.as_ref()), &cancel));
        performed.unwrap_or_else(|| Err(interrupted()))
    };
    match tokio::task::spawn_blocking(move || std::panic::catch_unwind(AssertUnwindSafe(work))).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(panicked(panic.as_ref())),
        Err(_) => Err(interrupted()),
    }
}

/// Runs `work` to its end, or drops it as soon as it waits while nobody wants its result any more.
pub(crate) async fn unless_cancelled<T>(work: impl Future<Output = T>, cancel: &Cancel) -> Option<T> {
    let mut work = pin!(work);
    let mut cancelled = pin!(cancel.cancelled());
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => cancelled.as_mut().poll(cx).map(|()| None),
    })
    .await
}

pub(crate) fn interrupted() -> ToolError {
    ToolError::new(ErrorKind::Interrupted, "The call was cancelled before it was done")
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> ToolError {
    let words =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    ToolError::internal(format!("The tool broke down: {}", words.unwrap_or("no reason given")))
}
