//! Sessions: the calls made in one workspace through one entry point.

use std::path::{Path, PathBuf};

use haft_tool::{ToolError, Value, now_ms, path_from_text, path_to_text};
use rusqlite::{OptionalExtension, Row, params};

use crate::Ledger;
use crate::database::{Durability, execute};
use crate::error::not_found;
use crate::process::ProcessIdentity;
use crate::query::first_receipt;
use crate::sql::{self, int};

/// Crockford's base32, which has no letters that look like digits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ID_CHARS: usize = 8;
const MAX_NAME_CHARS: usize = 64;

/// A session to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The folder it works in.
    pub workspace: PathBuf,
    /// The name of its dialect.
    pub dialect: String,
    /// Its entry point: `cli`, `mcp`, `library`, …
    pub entry_point: String,
}

/// A session in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its id.
    pub id: String,
    /// The folder it works in.
    pub workspace: PathBuf,
    /// The name of its dialect.
    pub dialect: String,
    /// Its entry point.
    pub entry_point: String,
    /// When it started, in milliseconds since 1970.
    pub started_at: u64,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// How many of its calls are in the ledger.
    pub calls: u64,
}

/// A session that made calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedSession {
    /// The session.
    pub info: SessionInfo,
    /// When its newest call started, in milliseconds since 1970.
    pub last_call_at: u64,
    /// How many of its calls changed something.
    pub changing_calls: u64,
}

impl Ledger {
    /// Starts a session and returns its id: eight random characters that are easy to type.
    pub fn start_session(&self, new: &NewSession) -> Result<String, ToolError> {
        loop {
            if let Some(id) = self.insert_session(new, None)? {
                return Ok(id);
            }
        }
    }

    /// The id of the session with this id or name; a name that no session of the workspace has yet starts one.
    pub fn continue_or_start_session(&self, id_or_name: &str, new: &NewSession) -> Result<String, ToolError> {
        let name = id_or_name.trim();
        if let Ok(known) = self.session(name)
            && known.id.eq_ignore_ascii_case(name)
        {
            return Ok(known.id);
        }
        if is_id(name) {
            return Err(no_session(name));
        }
        check_name(name)?;
        self.named_session(name, new)
    }

    /// The id of the workspace's session with this name, which is started if there is none.
    pub(crate) fn named_session(&self, name: &str, new: &NewSession) -> Result<String, ToolError> {
        loop {
            let workspace = path_to_text(&new.workspace);
            let known: Option<String> = self.db.read(|conn| {
                let mut statement = conn.prepare_cached(sql::SESSION_NAMED)?;
                Ok(statement.query_row([name, &workspace], |row| row.get(0)).optional()?)
            })?;
            // Another process may start the session at the same time; then the row is not inserted.
            if let Some(id) = known.map_or_else(|| self.insert_session(new, Some(name)), |id| Ok(Some(id)))? {
                return Ok(id);
            }
        }
    }

    /// Inserts a session with a new id; `None` if its id or name exists.
    fn insert_session(&self, new: &NewSession, name: Option<&str>) -> Result<Option<String>, ToolError> {
        let workspace = path_to_text(&new.workspace);
        let process = ProcessIdentity::current().to_text();
        let id = random_id()?;
        let row = params![id, workspace, new.dialect, new.entry_point, int(now_ms()), process, name];
        let inserted =
            self.db.write(Durability::ProcessCrash, |conn| execute(conn, sql::INSERT_SESSION, row))?;
        Ok((inserted == 1).then_some(id))
    }

    /// The session with exactly this id.
    pub fn session_with_id(&self, id: &str) -> Result<SessionInfo, ToolError> {
        let found = self
            .db
            .read(|conn| Ok(conn.prepare_cached(sql::SESSION)?.query_row([id], session_row).optional()?))?;
        found.ok_or_else(|| no_session(id))
    }

    /// The session with this name or id, or the only one whose id starts with it. Of several workspaces' sessions with
    /// one name, the newest.
    pub fn session(&self, name_or_id: &str) -> Result<SessionInfo, ToolError> {
        self.session_near(name_or_id, None)
    }

    /// The same; of several workspaces' sessions with one name, this workspace's.
    pub fn session_in(&self, name_or_id: &str, workspace: &Path) -> Result<SessionInfo, ToolError> {
        self.session_near(name_or_id, Some(workspace))
    }

    fn session_near(&self, name_or_id: &str, workspace: Option<&Path>) -> Result<SessionInfo, ToolError> {
        let mut named = self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::SESSIONS_NAMED)?;
            let found = statement.query_map([name_or_id], session_row)?;
            Ok(found.collect::<rusqlite::Result<Vec<_>>>()?)
        })?;
        named.sort_by_key(|session| (workspace == Some(session.workspace.as_path()), session.started_at));
        if let Some(session) = named.pop() {
            return Ok(session);
        }
        let prefix = normalized_id(name_or_id).ok_or_else(|| no_session(name_or_id))?;
        // '~' sorts after every character of an id.
        let mut found = self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::FIND_SESSION)?;
            let found = statement.query_map([&prefix, &format!("{prefix}~")], session_row)?;
            Ok(found.collect::<rusqlite::Result<Vec<_>>>()?)
        })?;
        match (found.pop(), found.pop()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(no_session(name_or_id)),
            (Some(_), Some(_)) => Err(ToolError::invalid_arguments(format!(
                "Several sessions start with {name_or_id:?}. Type more characters of the id."
            ))),
        }
    }

    /// The newest value that a call of the session stored under a name.
    pub fn note(&self, session: &str, name: &str) -> Result<Option<Value>, ToolError> {
        self.db.read(|conn| {
            let mut noted = conn.prepare_cached(sql::NOTED_IN)?;
            let id: Option<i64> = noted.query_row([session, name], |row| row.get(0)).optional()?;
            let receipt = id.map(|id| first_receipt(conn, sql::RECEIPT, [id])).transpose()?.flatten();
            Ok(receipt.and_then(|mut receipt| receipt.notes.remove(name)))
        })
    }

    /// At most `limit` sessions, newest first.
    pub fn sessions(&self, limit: usize) -> Result<Vec<SessionInfo>, ToolError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::NEWEST_SESSIONS)?;
            Ok(statement.query_map([int(limit)], session_row)?.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// At most `limit` sessions, of all workspaces or one, that started before this one: its start and its id; newest first.
    pub fn sessions_before(
        &self,
        workspace: Option<&Path>,
        (started_at, id): (u64, &str),
        limit: usize,
    ) -> Result<Vec<SessionInfo>, ToolError> {
        let workspace = workspace.map(path_to_text);
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::SESSIONS_BEFORE)?;
            let found =
                statement.query_map(params![int(started_at), id, workspace, int(limit)], session_row)?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// At most `limit` sessions of an entry point that started at a time or later, in milliseconds since 1970; the oldest first.
    pub fn sessions_from(
        &self,
        entry_point: &str,
        since: u64,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, ToolError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::SESSIONS_FROM)?;
            let found = statement.query_map(params![entry_point, int(since), int(limit)], session_row)?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// At most `limit` sessions that made calls, of all workspaces or one, the one with the newest call first.
    pub fn used_sessions(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> Result<Vec<UsedSession>, ToolError> {
        let workspace = workspace.map(path_to_text);
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(USED_SESSIONS)?;
            let rows = statement.query_map(params![workspace, int(limit)], |row| {
                let (last_call, changes) = (row.get(7)?, row.get(8)?);
                Ok(UsedSession { info: session_row(row)?, last_call_at: last_call, changing_calls: changes })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

const USED_SESSIONS: &str = "
SELECT s.id, s.workspace, s.dialect, s.entry_point, s.started_at, s.name,
  (SELECT count(*) FROM receipts r WHERE r.session = s.id), last.started_at,
  (SELECT count(*) FROM receipts r WHERE r.session = s.id AND r.change_count > 0)
FROM sessions s JOIN receipts last
  ON last.id = (SELECT max(r.id) FROM receipts r INDEXED BY receipts_in_session WHERE r.session = s.id)
WHERE ?1 IS NULL OR s.workspace = ?1
ORDER BY last.id DESC LIMIT ?2";

fn session_row(row: &Row<'_>) -> rusqlite::Result<SessionInfo> {
    Ok(SessionInfo {
        id: row.get(0)?,
        workspace: path_from_text(&row.get::<_, String>(1)?),
        dialect: row.get(2)?,
        entry_point: row.get(3)?,
        started_at: row.get(4)?,
        name: row.get(5)?,
        calls: row.get(6)?,
    })
}

fn no_session(name_or_id: &str) -> ToolError {
    not_found(format!("There is no session {name_or_id:?} in the ledger. `haft sessions` lists them."))
}

/// Refuses a name that could be taken for something else.
fn check_name(name: &str) -> Result<(), ToolError> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ' ');
    if name.is_empty()
        || name.starts_with('-')
        || name.chars().count() > MAX_NAME_CHARS
        || !name.chars().all(is_plain)
    {
        return Err(ToolError::invalid_arguments(format!(
            "{name:?} is not a name for a session. Use up to {MAX_NAME_CHARS} letters, digits, spaces, dots, dashes, \
             slashes and underscores."
        )));
    }
    Ok(())
}

/// Whether `text` has the form of an id: eight characters of its alphabet, with a digit and a letter.
fn is_id(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.len() == ID_CHARS
        && lower.bytes().all(|byte| ALPHABET.contains(&byte))
        && lower.bytes().any(|byte| byte.is_ascii_digit())
        && lower.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// The id that a person may have meant by `text`; `None` if it cannot be one.
fn normalized_id(text: &str) -> Option<String> {
    if text.is_empty() || text.len() > ID_CHARS {
        return None;
    }
    let normalize = |letter: char| match letter.to_ascii_lowercase() {
        'o' => Some('0'),
        'i' | 'l' => Some('1'),
        letter => u8::try_from(letter).is_ok_and(|byte| ALPHABET.contains(&byte)).then_some(letter),
    };
    text.chars().map(normalize).collect()
}

/// An id that no name can have.
fn random_id() -> Result<String, ToolError> {
    loop {
        let mut bytes = [0; ID_CHARS];
        getrandom::fill(&mut bytes)
            .map_err(|error| ToolError::internal(format!("The system has no random numbers: {error}")))?;
        let id: String = bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
        if is_id(&id) {
            return Ok(id);
        }
    }
}
