//! What is reported and asked while a command runs.

use std::sync::Arc;

use haft_net::proxy::HostAsker;

use crate::denials::RefusalSink;

/// Receives what is refused to a command, and decides about hosts that are not listed.
#[derive(Clone, Default)]
pub struct CommandHooks {
    /// Called for each refusal, on the thread that refuses.
    pub on_refused: Option<RefusalSink>,
    /// Called once per host and port that the proxy refuses, on a thread of the proxy.
    pub on_refused_host: Option<RefusalSink>,
    /// Decides about hosts that are not listed; without it they are refused.
    pub asker: Option<Arc<dyn HostAsker>>,
}
