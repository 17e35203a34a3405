//! Sessions: a workspace, a dialect and a door, and all the calls made through them.

use std::path::PathBuf;

use haft_tool::{ToolError, Value, now_ms, path_from_text, path_to_text};
use rusqlite::{OptionalExtension, Row, params};

use crate::Ledger;
use crate::db::{Survives, run};
use crate::fault::unknown;
use crate::owner::Owner;
use crate::query::first;
use crate::sql::{self, int};

/// Crockford's base32: no letter in it can be taken for a digit.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ID_CHARS: usize = 8;

/// What is known of a session when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The folder it works in.
    pub workspace: PathBuf,
    /// The name of its dialect.
    pub dialect: String,
    /// The door it came through: `cli`, `mcp`, `library`, …
    pub door: String,
}

/// A session as the ledger knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// The folder it works in.
    pub workspace: PathBuf,
    /// The name of its dialect.
    pub dialect: String,
    /// The door it came through.
    pub door: String,
    /// When it started, in milliseconds since 1970.
    pub started_at: u64,
    /// How many of its calls the ledger remembers.
    pub calls: u64,
}

impl Ledger {
    /// Starts a session and returns its id: eight random characters that are easy to type.
    pub fn start_session(&self, new: &NewSession) -> Result<String, ToolError> {
        let workspace = path_to_text(&new.workspace);
        let owner = Owner::this().to_text();
        loop {
            let id = random_id()?;
            let row = params![id, workspace, new.dialect, new.door, int(now_ms()), owner];
            if self.db.write(Survives::Crash, |conn| run(conn, sql::INSERT_SESSION, row))? == 1 {
                return Ok(id);
            }
        }
    }

    /// The session with this id, or the only one whose id begins so.
    pub fn session(&self, id_or_prefix: &str) -> Result<Session, ToolError> {
        let none = || unknown(format!("there is no session {id_or_prefix:?} in the ledger"));
        let prefix = typed(id_or_prefix).ok_or_else(none)?;
        // '~' sorts behind every character of an id.
        let mut found = self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::FIND_SESSION)?;
            let found = statement.query_map([&prefix, &format!("{prefix}~")], read)?;
            Ok(found.collect::<rusqlite::Result<Vec<_>>>()?)
        })?;
        match (found.pop(), found.pop()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(none()),
            (Some(_), Some(_)) => Err(ToolError::invalid_arguments(format!(
                "several sessions begin with {id_or_prefix:?}; type more characters of the id"
            ))),
        }
    }

    /// What a session noted last under a name.
    pub fn note(&self, session: &str, name: &str) -> Result<Option<Value>, ToolError> {
        self.db.read(|conn| {
            let mut noted = conn.prepare_cached(sql::NOTED_IN)?;
            let id: Option<i64> = noted.query_row([session, name], |row| row.get(0)).optional()?;
            let receipt = id.map(|id| first(conn, sql::RECEIPT, [id])).transpose()?.flatten();
            Ok(receipt.and_then(|mut receipt| receipt.notes.remove(name)))
        })
    }

    /// At most `limit` sessions, newest first.
    pub fn sessions(&self, limit: usize) -> Result<Vec<Session>, ToolError> {
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::NEWEST_SESSIONS)?;
            Ok(statement.query_map([int(limit)], read)?.collect::<rusqlite::Result<_>>()?)
        })
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: row.get(0)?,
        workspace: path_from_text(&row.get::<_, String>(1)?),
        dialect: row.get(2)?,
        door: row.get(3)?,
        started_at: row.get(4)?,
        calls: row.get(5)?,
    })
}

/// An id as people may type it; nothing if it can be none.
fn typed(text: &str) -> Option<String> {
    if text.is_empty() || text.len() > ID_CHARS {
        return None;
    }
    let read = |letter: char| match letter.to_ascii_lowercase() {
        'o' => Some('0'),
        'i' | 'l' => Some('1'),
        letter => u8::try_from(letter).is_ok_and(|byte| ALPHABET.contains(&byte)).then_some(letter),
    };
    text.chars().map(read).collect()
}

fn random_id() -> Result<String, ToolError> {
    let mut bytes = [0; ID_CHARS];
    getrandom::fill(&mut bytes)
        .map_err(|error| ToolError::internal(format!("the system gives no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
}
