//! The access log: one line of JSON for each request. Tokens and bodies are never in it.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Mutex;

use haft_tool::{json, lock, now_ms};

/// Characters of a path that are logged.
const MAX_PATH_CHARS: usize = 512;

/// Writes the access log, if there is one.
pub(crate) struct AccessLog {
    target: Mutex<Option<Box<dyn Write + Send>>>,
}

/// A request that was answered.
pub(crate) struct LoggedRequest<'a> {
    pub(crate) peer: SocketAddr,
    pub(crate) method: &'a str,
    /// Without the query, which may contain search texts.
    pub(crate) path: &'a str,
    pub(crate) role: Option<&'static str>,
    pub(crate) status: u16,
}

impl AccessLog {
    pub(crate) fn new(target: Option<Box<dyn Write + Send>>) -> Self {
        Self { target: Mutex::new(target) }
    }

    pub(crate) fn write(&self, request: &LoggedRequest<'_>) {
        let mut target = lock(&self.target);
        let Some(out) = target.as_mut() else { return };
        let path: String = request.path.chars().take(MAX_PATH_CHARS).collect();
        let line = json!({
            "at": now_ms(),
            "peer": request.peer.to_string(),
            "method": request.method,
            "path": path,
            "role": request.role,
            "status": request.status,
        });
        // One write per line, because several servers append to the same file and it is rotated between writes.
        let line = format!("{line}\n");
        if let Err(error) = out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
            // Not fatal: the disk may be full only for a while.
            tracing::warn!(%error, "a request could not be written to the access log");
        }
    }
}
