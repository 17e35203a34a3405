//! Makes calls. Each runs on a thread of its own and has exactly one result, even if it is cancelled and does not stop.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_tool::{
    AnyTool, Arguments, Call, Cancel, CancelGuard, Execution, Host, Output, Receipt, ReceiptState, ToolError,
    TraceContext, lock,
};
use tokio::sync::oneshot;

use crate::Runtime;
use crate::call_state::CallState;
use crate::driver::CallDriver;
use crate::steps::ask::Asker;

/// How long a cancelled call may take to stop. After that it gets an interrupted receipt and can no longer change anything.
const GRACE_PERIOD: Duration = Duration::from_secs(3);

/// Receives the status of a call: pending, running with its progress, completed.
pub type Watch = Arc<dyn Fn(&Execution) + Send + Sync>;

/// How a call is made, apart from its tool and arguments.
#[derive(Clone, Default)]
pub struct CallOptions {
    /// Cancels the call.
    pub cancel: Cancel,
    /// Receives the status of the call.
    pub watch: Option<Watch>,
    /// Answers this call's questions instead of the runtime's asker.
    pub asker: Option<Arc<dyn Asker>>,
    /// The host of this call's tool instead of the runtime's host.
    pub host: Option<Arc<dyn Host>>,
    /// The tool to call instead of one that the runtime offers.
    pub tool: Option<Arc<dyn AnyTool>>,
    /// How the arguments differ from what the model wrote, for the receipt.
    pub input_note: Option<String>,
    /// The caller's span, instead of the runtime's.
    pub trace_parent: Option<TraceContext>,
}

/// Who wants a call to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOrigin {
    /// A caller, usually on behalf of a model.
    Caller,
    /// The user in person, who is not asked about it again.
    User,
    /// A hook that the user configured. Rules do not apply to its command, and no hooks run for it.
    Hook,
}

/// The one result of a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallResult {
    /// The caller's id for the call.
    pub call_id: String,
    /// What the caller sees.
    pub output: Output,
    /// What the call did.
    pub receipt: Receipt,
    /// Why a hook wants the run to end.
    pub stop: Option<String>,
}

impl Runtime {
    /// Calls a tool by name and waits for its one result, even if the call is denied, fails, times out or is interrupted.
    pub async fn call(&self, tool: &str, arguments: impl Into<Arguments>) -> CallResult {
        self.run(Call::new(self.next_call_id(), tool, arguments), CallOptions::default()).await
    }

    /// Makes a call under the caller's own id.
    ///
    /// Calls run concurrently; only writes to the same path keep the order of the calls. Dropping the future cancels the call,
    /// but its receipt is still written.
    pub async fn run(&self, call: Call, options: CallOptions) -> CallResult {
        let mut cancel = CancelOnDrop { cancel: options.cancel.clone(), armed: true };
        let result = self.start(call, options, CallOrigin::Caller).wait().await;
        cancel.armed = false;
        result
    }

    /// Like [`Runtime::run`], but blocks the thread.
    pub fn run_blocking(&self, call: Call, options: CallOptions) -> CallResult {
        self.start(call, options, CallOrigin::Caller).wait_blocking()
    }

    /// Starts a call.
    pub(crate) fn start(&self, call: Call, options: CallOptions, origin: CallOrigin) -> StartedCall {
        let (send, result) = oneshot::channel();
        let cancel = options.cancel.clone();
        let driver = CallDriver::new(&self.inner, call, options, origin);
        let state = driver.state();
        let sender = ResultSender(Arc::new(Mutex::new(Some(send))));
        let listener = end_after_grace_period(&state, &cancel, &sender);
        let driving = sender.clone();
        let spawned = std::thread::Builder::new().name("haft-call".to_owned()).spawn(move || {
            let _listener = listener;
            driving.send(driver.run());
        });
        if let Err(error) = spawned {
            let error = ToolError::io("start a thread for the call", &error);
            sender.send(state.end_early(ReceiptState::Failed, error));
        }
        StartedCall { state, result }
    }
}

/// Ends the call if it is still running one grace period after its cancellation.
fn end_after_grace_period(state: &Arc<CallState>, cancel: &Cancel, sender: &ResultSender) -> CancelGuard {
    let (state, sender) = (Arc::clone(state), sender.clone());
    cancel.on_cancel(move || {
        let (state, sender) = (Arc::clone(&state), sender.clone());
        std::thread::spawn(move || {
            if !state.turn.has_left_within(GRACE_PERIOD) {
                sender.send(state.finish_as_interrupted());
            }
        });
    })
}

/// A call that runs on its own thread.
pub(crate) struct StartedCall {
    state: Arc<CallState>,
    result: oneshot::Receiver<CallResult>,
}

impl StartedCall {
    pub(crate) async fn wait(self) -> CallResult {
        self.result.await.unwrap_or_else(|_| self.state.unrecorded(&no_result()))
    }

    pub(crate) fn wait_blocking(self) -> CallResult {
        self.result.blocking_recv().unwrap_or_else(|_| self.state.unrecorded(&no_result()))
    }
}

fn no_result() -> ToolError {
    ToolError::internal("the thread of the call ended without a result")
}

/// Sends the result of a call once.
#[derive(Clone)]
struct ResultSender(Arc<Mutex<Option<oneshot::Sender<CallResult>>>>);

impl ResultSender {
    fn send(&self, result: Option<CallResult>) {
        if let Some(result) = result
            && let Some(sender) = lock(&self.0).take()
        {
            // The caller may have dropped its future.
            let _ = sender.send(result);
        }
    }
}

/// Cancels a call whose future is dropped.
struct CancelOnDrop {
    cancel: Cancel,
    armed: bool,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.armed {
            self.cancel.cancel();
        }
    }
}
