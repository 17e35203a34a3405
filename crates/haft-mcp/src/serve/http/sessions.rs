//! Sessions of clients that begin with a handshake.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_tool::Cancel;
use hyper::StatusCode;

use super::HttpServerLimits;
use super::event_stream::{EventSink, EventStream, StreamMode};
use super::response::Rejection;
use crate::serve::peer::{ClientPeer, lock};
use crate::wire::ProtocolVersion;

/// Finished streams that are kept for a client that missed their end.
const MAX_FINISHED_STREAMS: usize = 32;
/// Random bytes of a session id.
const SESSION_ID_BYTES: usize = 32;

/// The session of one client.
pub(super) struct HttpSession {
    pub(super) peer: Arc<ClientPeer>,
    last_used: Mutex<Instant>,
    last_stream: AtomicU64,
    streams: Mutex<BTreeMap<u64, Arc<EventStream>>>,
}

impl HttpSession {
    fn new(peer: Arc<ClientPeer>) -> Self {
        let last_used = Mutex::new(Instant::now());
        Self { peer, last_used, last_stream: AtomicU64::new(0), streams: Mutex::default() }
    }

    /// A new stream for a request, or, without `cancel`, for messages that belong to no request.
    pub(super) fn open_stream(&self, cancel: Option<Cancel>, responses: usize) -> Arc<EventStream> {
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        // Clients of earlier versions would take the priming event for a message.
        let priming = self.peer.version() >= Some(ProtocolVersion::V2025_11_25);
        let stream = EventStream::new(number, StreamMode::Resumable { priming }, cancel, responses);
        let mut streams = lock(&self.streams);
        streams.insert(number, Arc::clone(&stream));
        let finished: Vec<u64> =
            streams.iter().filter(|(_, stream)| stream.is_finished()).map(|(number, _)| *number).collect();
        for number in finished.iter().take(finished.len().saturating_sub(MAX_FINISHED_STREAMS)) {
            streams.remove(number);
        }
        stream
    }

    /// A new stream for messages that belong to no request; replaces the previous one.
    pub(super) fn listen(&self) -> Arc<EventStream> {
        let stream = self.open_stream(None, 1);
        // Drops the previous sink, which ends its stream.
        self.peer.set_sink(Some(Arc::new(EventSink(Arc::clone(&stream)))));
        stream
    }

    pub(super) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        lock(&self.streams).get(&number).cloned()
    }

    /// Removes a stream that will not be resumed.
    pub(super) fn remove_stream(&self, stream: &Arc<EventStream>) {
        lock(&self.streams).remove(&stream.number);
    }

    fn is_busy(&self) -> bool {
        lock(&self.streams).values().any(|stream| !stream.is_finished())
    }

    /// Abandons streams that have had no reader for `reconnect_timeout`.
    fn expire_streams(&self, now: Instant, reconnect_timeout: Duration) {
        let is_expired = |stream: &Arc<EventStream>| {
            stream.disconnected_at().is_some_and(|at| now.saturating_duration_since(at) >= reconnect_timeout)
        };
        let expired: Vec<_> = lock(&self.streams).extract_if(.., |_, stream| is_expired(stream)).collect();
        for (_, stream) in expired {
            stream.abandon();
        }
    }

    fn end(&self) {
        self.peer.set_sink(None);
        self.peer.cancel_all();
        let all = std::mem::take(&mut *lock(&self.streams));
        for stream in all.values() {
            stream.abandon();
        }
    }
}

/// All sessions, by id.
pub(super) struct HttpSessions {
    all: Mutex<HashMap<String, Arc<HttpSession>>>,
    max_sessions: usize,
    session_timeout: Duration,
    reconnect_timeout: Duration,
}

impl HttpSessions {
    pub(super) fn new(limits: &HttpServerLimits) -> Self {
        Self {
            all: Mutex::default(),
            max_sessions: limits.max_sessions,
            session_timeout: limits.session_timeout,
            reconnect_timeout: limits.reconnect_timeout,
        }
    }

    /// Begins a session; returns its id. At the limit, the session that has been unused the longest ends.
    pub(super) fn begin(&self, peer: Arc<ClientPeer>) -> Result<String, Rejection> {
        let mut bytes = [0; SESSION_ID_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| {
            Rejection::new(StatusCode::INTERNAL_SERVER_ERROR, format!("No random bytes: {error}"))
        })?;
        let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut all = lock(&self.all);
        if all.len() >= self.max_sessions {
            let idle = all.iter().filter(|(_, session)| !session.is_busy());
            let oldest = idle.min_by_key(|(_, session)| *lock(&session.last_used)).map(|(id, _)| id.clone());
            let full = || Rejection::overloaded(format!("All {} sessions are in use", self.max_sessions));
            all.remove(&oldest.ok_or_else(full)?);
        }
        all.insert(id.clone(), Arc::new(HttpSession::new(peer)));
        Ok(id)
    }

    /// The session with that id, if it belongs to `principal`.
    pub(super) fn get(&self, id: &str, principal: &str) -> Result<Arc<HttpSession>, Rejection> {
        let session = lock(&self.all).get(id).filter(|session| session.peer.principal == principal).cloned();
        let session = session.ok_or_else(unknown_session)?;
        *lock(&session.last_used) = Instant::now();
        Ok(session)
    }

    /// Ends a session.
    pub(super) fn end(&self, id: &str, principal: &str) -> Result<(), Rejection> {
        let session = self.get(id, principal)?;
        lock(&self.all).remove(id).ok_or_else(unknown_session)?;
        session.end();
        Ok(())
    }

    /// Ends sessions and streams that have been unused for too long.
    pub(super) fn expire(&self, now: Instant) {
        let all: Vec<Arc<HttpSession>> = lock(&self.all).values().cloned().collect();
        for session in all {
            session.expire_streams(now, self.reconnect_timeout);
        }
        let is_expired = |session: &HttpSession| {
            now.saturating_duration_since(*lock(&session.last_used)) >= self.session_timeout
                && !session.is_busy()
        };
        let expired: Vec<_> = lock(&self.all).extract_if(|_, session| is_expired(session)).collect();
        for (_, session) in expired {
            session.end();
        }
    }

    /// Ends all sessions.
    pub(super) fn close(&self) {
        let all = std::mem::take(&mut *lock(&self.all));
        for session in all.values() {
            session.end();
        }
    }
}

/// The same for unknown sessions and for those of other principals.
fn unknown_session() -> Rejection {
    let why = "The session is unknown or has ended. Begin again with \"initialize\".";
    Rejection::new(StatusCode::NOT_FOUND, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_lasts_while_it_is_used_or_has_an_open_stream() {
        let limits = HttpServerLimits {
            session_timeout: Duration::from_mins(1),
            reconnect_timeout: Duration::from_secs(5),
            ..HttpServerLimits::default()
        };
        let sessions = HttpSessions::new(&limits);
        let [idle, busy] = [(); 2].map(|()| sessions.begin(ClientPeer::new("one")).ok().unwrap());
        let cancel = Cancel::new();
        let stream = sessions.get(&busy, "one").ok().unwrap().open_stream(Some(cancel.clone()), 1);
        let now = Instant::now();
        sessions.expire(now + Duration::from_secs(30));
        assert!(sessions.get(&idle, "one").is_ok());
        sessions.expire(Instant::now() + Duration::from_mins(1));
        assert!(sessions.get(&idle, "one").is_err());
        assert!(sessions.get(&busy, "one").is_ok() && !cancel.is_cancelled());
        stream.end();
        sessions.expire(Instant::now() + Duration::from_mins(1));
        assert!(sessions.get(&busy, "one").is_err());
    }
}
