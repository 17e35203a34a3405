//! A proxy that is started by its first connection: most commands make none.

use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd};

use super::server::Proxy;
use super::settings::ProxySettings;

/// A listener, and the proxy that serves it from its first connection on. Dropping it stops the proxy.
pub struct LazyProxy {
    waiting: Option<(TcpListener, ProxySettings)>,
    running: Option<Proxy>,
}

impl LazyProxy {
    /// A proxy that is not started yet.
    pub fn new(listener: TcpListener, settings: ProxySettings) -> Self {
        Self { waiting: Some((listener, settings)), running: None }
    }

    /// The descriptor that becomes readable with the first connection; `None` once the proxy was started.
    pub fn first_connection(&self) -> Option<BorrowedFd<'_>> {
        self.waiting.as_ref().map(|(listener, _)| listener.as_fd())
    }

    /// Starts the proxy. If that fails, the listener is closed, so that connections are refused.
    pub fn start(&mut self) {
        if let Some((listener, settings)) = self.waiting.take() {
            self.running = Proxy::start(listener, settings).ok();
        }
    }
}
