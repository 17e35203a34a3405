//! Questions that wait for a person. They are in the ledger so that any process may show and answer them; the first answer counts.

use haft_tool::{ErrorKind, ToolError, Value, json, now_ms};
use rusqlite::{OptionalExtension, Row, params};

use crate::Ledger;
use crate::database::{Durability, execute};
use crate::error::{TxResult, damaged, not_found};
use crate::process::ProcessIdentity;
use crate::recorded_input::{MAX_JSON_DEPTH, is_deeper_than};
use crate::sql::{self, int};

/// No person can review a longer question.
const MAX_QUESTION_BYTES: usize = 1 << 20;
/// A process that has not noted for this long that it shows questions counts as gone, because a process in another pid namespace
/// cannot be seen.
const MAX_ANSWERING_AGE_MS: u64 = 2 * 60 * 1_000;

/// The number of a question in the ledger.
pub type QuestionId = i64;

/// A question in the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredQuestion {
    /// Its number.
    pub id: QuestionId,
    /// The session in which it was asked.
    pub session: String,
    /// When it was asked, in milliseconds since 1970.
    pub asked_at: u64,
    /// The question, in the form of the process that asked it.
    pub body: Value,
    /// The answer, in the form of its author; `None` while it is open.
    pub answer: Option<Value>,
    /// When it was answered or withdrawn, in milliseconds since 1970.
    pub ended_at: Option<u64>,
    /// Whether the process that asked it still runs.
    pub is_asked: bool,
}

impl StoredQuestion {
    /// Whether it still waits for an answer.
    pub fn is_open(&self) -> bool {
        self.ended_at.is_none() && self.is_asked
    }
}

impl Ledger {
    /// Asks a question in a session.
    pub fn ask(&self, session: &str, body: &Value) -> Result<QuestionId, ToolError> {
        let (process, body) = (ProcessIdentity::current().to_text(), readable("question", body)?);
        self.db.write(Durability::ProcessCrash, |conn| {
            execute(conn, sql::INSERT_QUESTION, params![session, process, int(now_ms()), body])?;
            Ok(conn.last_insert_rowid())
        })
    }

    /// Answers a question. Fails with [`ErrorKind::Conflict`] and the detail `answer` if it was already answered or withdrawn.
    pub fn answer(&self, id: QuestionId, answer: &Value) -> Result<(), ToolError> {
        let text = readable("answer", answer)?;
        let answered = self.db.write(Durability::ProcessCrash, |conn| {
            execute(conn, sql::ANSWER_QUESTION, params![id, text, int(now_ms())])
        })?;
        if answered == 1 {
            return Ok(());
        }
        let earlier = self.question(id)?.answer;
        let why = if earlier.is_some() { "was answered already" } else { "was withdrawn" };
        let error = ToolError::new(ErrorKind::Conflict, format!("Question {id} {why}."));
        Err(error.with_details(json!({ "answer": earlier })))
    }

    /// Withdraws a question that has no answer yet.
    pub fn withdraw(&self, id: QuestionId) -> Result<(), ToolError> {
        self.db.write(Durability::ProcessCrash, |conn| {
            execute(conn, sql::ANSWER_QUESTION, params![id, None::<String>, int(now_ms())])?;
            Ok(())
        })
    }

    /// The question with this number.
    pub fn question(&self, id: QuestionId) -> Result<StoredQuestion, ToolError> {
        let found = self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::QUESTION)?;
            let found = statement.query_row([id], |row| Ok(stored(row))).optional()?;
            found.transpose()
        })?;
        found.ok_or_else(|| not_found(format!("There is no question {id} in the ledger.")))
    }

    /// The questions that wait for an answer, oldest first.
    pub fn open_questions(&self) -> Result<Vec<StoredQuestion>, ToolError> {
        let all = self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::OPEN_QUESTIONS)?;
            let mut rows = statement.query([])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                // A question that cannot be read must not hide the others.
                all.extend(stored(row).ok());
            }
            Ok(all)
        })?;
        Ok(all.into_iter().filter(StoredQuestion::is_open).collect())
    }

    /// Notes whether this process shows questions to a person who can answer them. While it does, the note has to be repeated every
    /// minute.
    pub fn set_answering(&self, is_answering: bool) -> Result<(), ToolError> {
        let process = ProcessIdentity::current().to_text();
        self.db.write(Durability::ProcessCrash, |conn| {
            if is_answering {
                execute(conn, sql::INSERT_ANSWERING, params![process, int(now_ms())])?;
            } else {
                execute(conn, sql::DELETE_ANSWERING, [process])?;
            }
            Ok(())
        })
    }

    /// Whether any process shows questions to a person who can answer them.
    pub fn is_anyone_answering(&self) -> Result<bool, ToolError> {
        let now = now_ms();
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::ALL_ANSWERING)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let process: String = row.get(0)?;
                if answers(&process, row.get(1)?, now) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }
}

/// Whether a process that noted at `since` that it shows questions counts as still doing so.
pub(crate) fn answers(process: &str, since: u64, now: u64) -> bool {
    let is_gone = ProcessIdentity::parse(process).is_none_or(|process| process.is_gone(since, now));
    !is_gone && now.saturating_sub(since) <= MAX_ANSWERING_AGE_MS
}

/// A question or an answer as text, unless it is too deep or too long to be read again.
fn readable(what: &str, value: &Value) -> Result<String, ToolError> {
    if is_deeper_than(value, MAX_JSON_DEPTH) {
        return Err(ToolError::invalid_arguments(format!("The {what} is nested too deep to be shown.")));
    }
    let text = value.to_string();
    if text.len() > MAX_QUESTION_BYTES {
        let why = format!("The {what} has {} bytes; at most {MAX_QUESTION_BYTES} can be shown.", text.len());
        return Err(ToolError::invalid_arguments(why));
    }
    Ok(text)
}

fn stored(row: &Row<'_>) -> TxResult<StoredQuestion> {
    let (id, asked_at, process): (i64, u64, String) = (row.get(0)?, row.get(2)?, row.get(3)?);
    let parse = |text: String| {
        serde_json::from_str(&text)
            .map_err(|error| damaged(format!("Question {id} in the ledger cannot be read: {error}")))
    };
    let answer: Option<String> = row.get(5)?;
    let process = ProcessIdentity::parse(&process);
    Ok(StoredQuestion {
        id,
        session: row.get(1)?,
        asked_at,
        body: parse(row.get(4)?)?,
        answer: answer.map(parse).transpose()?,
        ended_at: row.get(6)?,
        is_asked: process.is_some_and(|process| !process.is_gone(asked_at, now_ms())),
    })
}
