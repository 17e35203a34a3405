//! Sessions: the calls made in one workspace through one entry point.

use std::path::PathBuf;

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
    /// How many of its calls are in the ledger.
    pub calls: u64,
}

impl Ledger {
    /// Starts a session and returns its id: eight random characters that are easy to type.
    pub fn start_session(&self, new: &NewSession) -> Result<String, ToolError> {
        let workspace = path_to_text(&new.workspace);
        let process = ProcessIdentity::current().to_text();
        loop {
            let id = random_id()?;
            let row = params![id, workspace, new.dialect, new.entry_point, int(now_ms()), process];
            if self.db.write(Durability::ProcessCrash, |conn| execute(conn, sql::INSERT_SESSION, row))? == 1 {
                return Ok(id);
            }
        }
    }

    /// The session with this id, or the only one whose id starts with it.
    pub fn session(&self, id_or_prefix: &str) -> Result<SessionInfo, ToolError> {
        let none = || not_found(format!("There is no session {id_or_prefix:?} in the ledger."));
        let prefix = normalized_id(id_or_prefix).ok_or_else(none)?;
        // '~' sorts after every character of an id.
        let mut found = self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::FIND_SESSION)?;
            let found = statement.query_map([&prefix, &format!("{prefix}~")], session_row)?;
            Ok(found.collect::<rusqlite::Result<Vec<_>>>()?)
        })?;
        match (found.pop(), found.pop()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(none()),
            (Some(_), Some(_)) => Err(ToolError::invalid_arguments(format!(
                "Several sessions start with {id_or_prefix:?}. Type more characters of the id."
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
}

fn session_row(row: &Row<'_>) -> rusqlite::Result<SessionInfo> {
    Ok(SessionInfo {
        id: row.get(0)?,
        workspace: path_from_text(&row.get::<_, String>(1)?),
        dialect: row.get(2)?,
        entry_point: row.get(3)?,
        started_at: row.get(4)?,
        calls: row.get(5)?,
    })
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

fn random_id() -> Result<String, ToolError> {
    let mut bytes = [0; ID_CHARS];
    getrandom::fill(&mut bytes)
        .map_err(|error| ToolError::internal(format!("The system has no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
}
