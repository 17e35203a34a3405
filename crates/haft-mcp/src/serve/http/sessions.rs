//! Sessions of clients that begin with a handshake.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_tool::Cancel;
use hyper::StatusCode;

use super::Limits;
use super::answer::Refusal;
use super::stream::{Manner, Speaker, Stream};
use crate::serve::peer::{Peer, lock};
use crate::wire::Version;

/// How many streams that have ended are kept for a client that missed their end.
const MOST_ENDED: usize = 32;

/// One client's session.
pub(super) struct Session {
    pub(super) peer: Arc<Peer>,
    used: Mutex<Instant>,
    numbers: AtomicU64,
    streams: Mutex<BTreeMap<u64, Arc<Stream>>>,
}

impl Session {
    fn new(peer: Arc<Peer>) -> Self {
        let used = Mutex::new(Instant::now());
        Self { peer, used, numbers: AtomicU64::new(0), streams: Mutex::default() }
    }

    /// A stream for a request of this client's, or for what belongs to none if there is nothing to cancel.
    pub(super) fn open(&self, cancel: Option<Cancel>, answers: usize) -> Arc<Stream> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        // Earlier clients take every event for a message.
        let primed = self.peer.version() >= Some(Version::V2025_11_25);
        let stream = Stream::new(number, Manner::Resumable { primed }, cancel, answers);
        let mut streams = lock(&self.streams);
        streams.insert(number, Arc::clone(&stream));
        let ended: Vec<u64> =
            streams.iter().filter(|(_, stream)| stream.is_done()).map(|(number, _)| *number).collect();
        for number in ended.iter().take(ended.len().saturating_sub(MOST_ENDED)) {
            streams.remove(number);
        }
        stream
    }

    /// A new stream for news, instead of the one there was.
    pub(super) fn listen(&self) -> Arc<Stream> {
        let stream = self.open(None, 1);
        // The one before ends, because nobody speaks there any more.
        self.peer.hear_at(Some(Arc::new(Speaker(Arc::clone(&stream)))));
        stream
    }

    /// The stream of that number.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<Stream>> {
        lock(&self.streams).get(&number).cloned()
    }

    /// Nobody will come back to that stream.
    pub(super) fn forget(&self, stream: &Arc<Stream>) {
        lock(&self.streams).retain(|_, kept| !Arc::ptr_eq(kept, stream));
    }

    fn is_busy(&self) -> bool {
        lock(&self.streams).values().any(|stream| !stream.is_done())
    }

    /// Gives up streams that nobody has read for so long.
    fn sweep(&self, now: Instant, absence: Duration) {
        let late = |stream: &Arc<Stream>| {
            stream.left().is_some_and(|left| now.saturating_duration_since(left) >= absence)
        };
        let given_up: Vec<Arc<Stream>> = {
            let mut streams = lock(&self.streams);
            let late: Vec<_> = streams.values().filter(|stream| late(stream)).cloned().collect();
            streams.retain(|_, stream| !late.iter().any(|one| Arc::ptr_eq(one, stream)));
            late
        };
        for stream in given_up {
            stream.abandon();
        }
    }

    fn end(&self) {
        self.peer.hear_at(None);
        self.peer.leave();
        let all = std::mem::take(&mut *lock(&self.streams));
        for stream in all.values() {
            stream.abandon();
        }
    }
}

/// All sessions.
pub(super) struct Sessions {
    all: Mutex<HashMap<String, Arc<Session>>>,
    most: usize,
    idle: Duration,
    absence: Duration,
}

impl Sessions {
    pub(super) fn new(limits: &Limits) -> Self {
        let (most, idle, absence) = (limits.sessions, limits.idle, limits.absence);
        Self { all: Mutex::default(), most, idle, absence }
    }

    /// A session for a client that has just introduced itself; gives the word that stands for it.
    pub(super) fn begin(&self, peer: Arc<Peer>) -> Result<String, Refusal> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("There is no randomness: {error}"))
        })?;
        let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut all = lock(&self.all);
        if all.len() >= self.most {
            let idle = all.iter().filter(|(_, session)| !session.is_busy());
            let longest = idle.min_by_key(|(_, session)| *lock(&session.used)).map(|(id, _)| id.clone());
            let longest =
                longest.ok_or_else(|| Refusal::busy(format!("All {} sessions are in use", self.most)))?;
            all.remove(&longest);
        }
        all.insert(id.clone(), Arc::new(Session::new(peer)));
        Ok(id)
    }

    /// The session of that word, if it is this client's.
    pub(super) fn get(&self, id: &str, principal: &str) -> Result<Arc<Session>, Refusal> {
        let session = lock(&self.all).get(id).filter(|session| session.peer.principal == principal).cloned();
        let session = session.ok_or_else(unknown)?;
        *lock(&session.used) = Instant::now();
        Ok(session)
    }

    /// Ends a session.
    pub(super) fn end(&self, id: &str, principal: &str) -> Result<(), Refusal> {
        let session = self.get(id, principal)?;
        lock(&self.all).remove(id).ok_or_else(unknown)?;
        session.end();
        Ok(())
    }

    /// Gives up what nobody has used for too long.
    pub(super) fn sweep(&self, now: Instant) {
        let all: Vec<Arc<Session>> = lock(&self.all).values().cloned().collect();
        for session in all {
            session.sweep(now, self.absence);
        }
        let unused = |session: &Session| {
            now.saturating_duration_since(*lock(&session.used)) >= self.idle && !session.is_busy()
        };
        let mut given_up = Vec::new();
        lock(&self.all).retain(|_, session| {
            let unused = unused(session);
            if unused {
                given_up.push(Arc::clone(session));
            }
            !unused
        });
        for session in given_up {
            session.end();
        }
    }

    /// Ends all of them.
    pub(super) fn close(&self) {
        let all = std::mem::take(&mut *lock(&self.all));
        for session in all.values() {
            session.end();
        }
    }
}

/// Whether there is such a session that belongs to somebody else is nobody's business.
fn unknown() -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        "There is no such session (any more); begin again with \"initialize\"",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lasts_while_it_is_used_or_something_goes_on_in_it() {
        let limits =
            Limits { idle: Duration::from_mins(1), absence: Duration::from_secs(5), ..Limits::default() };
        let sessions = Sessions::new(&limits);
        let [idle, busy] = [(); 2].map(|()| sessions.begin(Peer::new("one")).ok().unwrap());
        let cancel = Cancel::new();
        let stream = sessions.get(&busy, "one").ok().unwrap().open(Some(cancel.clone()), 1);
        let now = Instant::now();
        sessions.sweep(now + Duration::from_secs(30));
        assert!(sessions.get(&idle, "one").is_ok());
        sessions.sweep(Instant::now() + Duration::from_mins(1));
        assert!(sessions.get(&idle, "one").is_err());
        assert!(sessions.get(&busy, "one").is_ok() && !cancel.is_cancelled());
        stream.end();
        sessions.sweep(Instant::now() + Duration::from_mins(1));
        assert!(sessions.get(&busy, "one").is_err());
    }
}
