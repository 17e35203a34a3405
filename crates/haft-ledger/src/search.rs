//! Searching receipts: conditions that no index answers are checked row by row, newest first, until enough are found.
//!
//! A row is parsed only if its stored text may match, so that searching a long history takes a fraction of a second without
//! an index that every call would have to maintain.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use haft_tool::{Change, Effect, Receipt, ReceiptState, ToolError, Value, lies_in, path_to_text};
use regex::bytes::{Regex, RegexBuilder};
use rusqlite::{Connection, Row, params_from_iter, types::ValueRef};

use crate::Ledger;
use crate::error::TxResult;
use crate::query::{ReceiptQuery, ReceiptSummary, intended_changes, parse_changes, parse_receipt};

/// How much of the database is mapped into memory while it is searched.
const MAX_MAPPED_BYTES: u64 = 1 << 30;

/// Conditions on receipts besides those of a [`ReceiptQuery`]. All of them must hold.
#[derive(Debug, Clone, Default)]
pub struct ReceiptFilter {
    /// Calls of one of these tools; of any if there are none.
    pub tools: Vec<String>,
    /// Calls that failed, were denied or interrupted, or whose command returned another exit code than 0.
    pub failed: bool,
    /// Calls that started at this time or later, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Calls that declared or changed this path or one below it.
    pub path: Option<PathBuf>,
    /// Calls that changed exactly this path, or moved a directory to a path above it.
    pub changed: Option<PathBuf>,
    /// Calls with this text in the tool's name, the arguments, the error or the result; case does not matter.
    pub text: Option<String>,
    /// Of each session only the newest such call.
    pub one_per_session: bool,
}

impl ReceiptFilter {
    /// Whether every receipt passes.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
            && !self.failed
            && self.since_ms.is_none()
            && self.path.is_none()
            && self.changed.is_none()
            && self.text.is_none()
            && !self.one_per_session
    }
}

impl Ledger {
    /// Receipts that pass the filter, newest first, with all their changes if the filter has a path.
    pub fn search(
        &self,
        query: &ReceiptQuery,
        filter: &ReceiptFilter,
    ) -> Result<Vec<ReceiptSummary>, ToolError> {
        if filter.is_empty() {
            return self.summaries(query);
        }
        self.search_after(query, filter, 0)
    }

    /// The same, of calls after the one with the number `after`.
    pub fn search_after(
        &self,
        query: &ReceiptQuery,
        filter: &ReceiptFilter,
        after: i64,
    ) -> Result<Vec<ReceiptSummary>, ToolError> {
        self.search_in_order(query, filter, after, SearchOrder::NewestFirst)
    }

    /// The same, oldest first.
    pub fn search_oldest_first(
        &self,
        query: &ReceiptQuery,
        filter: &ReceiptFilter,
        after: i64,
    ) -> Result<Vec<ReceiptSummary>, ToolError> {
        self.search_in_order(query, filter, after, SearchOrder::OldestFirst)
    }

    fn search_in_order(
        &self,
        query: &ReceiptQuery,
        filter: &ReceiptFilter,
        after: i64,
        order: SearchOrder,
    ) -> Result<Vec<ReceiptSummary>, ToolError> {
        let search = ReceiptSearch::new(filter, order)?;
        let map = |bytes: u64| {
            self.db
                .without_transaction(|conn| Ok(conn.execute_batch(&format!("PRAGMA mmap_size = {bytes}"))?))
        };
        // A scan of 400 MB takes a third less time without a system call per page. While a snapshot is read, no process
        // shortens the file.
        map(MAX_MAPPED_BYTES)?;
        let found = self.db.read(|conn| search.run(self, conn, query, after));
        map(0)?;
        found
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SearchOrder {
    NewestFirst,
    OldestFirst,
}

/// A filter, prepared for comparing stored text.
struct ReceiptSearch<'a> {
    filter: &'a ReceiptFilter,
    order: SearchOrder,
    /// The text as results contain it, and as JSON does.
    text: Option<(Regex, Regex)>,
    tools: Vec<Regex>,
    path: Option<Regex>,
    changed: Option<Regex>,
    /// The field of the exit code.
    exit_code: Regex,
}

impl<'a> ReceiptSearch<'a> {
    fn new(filter: &'a ReceiptFilter, order: SearchOrder) -> Result<Self, ToolError> {
        let text = filter.text.as_deref().map(|text| -> Result<_, ToolError> {
            Ok((literal(text, true)?, literal(&inside_json(text)?, true)?))
        });
        let tools =
            filter.tools.iter().map(|tool| literal(&format!("\"tool\":\"{}\"", inside_json(tool)?), true));
        let quoted = |path: &Path| inside_json(&path_to_text(path));
        let path = filter.path.as_deref().map(|path| literal(&quoted(path)?, false));
        let changed = filter.changed.as_deref().map(|path| -> Result<_, ToolError> {
            let mut parts = vec![regex::escape(&format!("\"{}\"", quoted(path)?))];
            for above in path.ancestors().skip(1) {
                parts.push(regex::escape(&format!("\"moved_to\":\"{}\"", quoted(above)?)));
            }
            pattern(&parts.join("|"), false)
        });
        Ok(Self {
            filter,
            order,
            text: text.transpose()?,
            tools: tools.collect::<Result<_, ToolError>>()?,
            path: path.transpose()?,
            changed: changed.transpose()?,
            exit_code: literal("\"exit_code\":", false)?,
        })
    }

    fn run(
        &self,
        ledger: &Ledger,
        conn: &Connection,
        query: &ReceiptQuery,
        after: i64,
    ) -> TxResult<Vec<ReceiptSummary>> {
        let mut conditions = vec!["r.id < ?1", "r.id > ?2"];
        let mut values = vec![query.before.unwrap_or(i64::MAX).into(), after.into()];
        let mut index = "";
        if let Some(workspace) = &query.workspace {
            conditions.push("r.workspace = ?3");
            values.push(rusqlite::types::Value::from(path_to_text(workspace).into_owned()));
            index = if query.only_changes {
                "INDEXED BY changed_in_workspace"
            } else {
                "INDEXED BY receipts_in_workspace"
            };
        }
        if let Some(session) = &query.session {
            conditions.push(if values.len() == 3 { "r.session = ?4" } else { "r.session = ?3" });
            values.push(session.clone().into());
            index = "INDEXED BY receipts_in_session";
        }
        if query.only_changes {
            index = if index.is_empty() { "INDEXED BY changed" } else { index };
            conditions.push("r.change_count > 0");
        }
        // A column that is named is read, and results and changes may be long.
        let result = if self.text.is_some() { "r.result, r.result_hash" } else { "NULL, NULL" };
        let changes = if self.needs_changes() { "r.changes" } else { "NULL" };
        let direction = if self.order == SearchOrder::NewestFirst { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT r.id, r.state, r.started_at, r.body, r.change_count, r.undone_by, {result}, {changes}, r.session
             FROM receipts r {index} WHERE {} ORDER BY r.id {direction}",
            conditions.join(" AND ")
        );
        let mut statement = conn.prepare(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let (mut found, mut sessions) = (Vec::new(), HashSet::new());
        while found.len() < query.limit
            && let Some(row) = rows.next()?
        {
            ledger.check_cancelled()?;
            if self.filter.one_per_session && sessions.contains(text_of(row, 9)?) {
                continue;
            }
            match ledger.skip_damaged(row.get(0)?, self.examine(ledger, conn, row))? {
                Some(Examined::Match(summary)) => {
                    if self.filter.one_per_session {
                        sessions.insert(text_of(row, 9)?.to_vec());
                    }
                    found.push(*summary);
                }
                Some(Examined::AllOlder) if self.order == SearchOrder::NewestFirst => break,
                Some(Examined::Other | Examined::AllOlder) | None => {}
            }
        }
        Ok(found)
    }

    fn examine(&self, ledger: &Ledger, conn: &Connection, row: &Row<'_>) -> TxResult<Examined> {
        let (id, started_at): (i64, u64) = (row.get(0)?, row.get(2)?);
        let body = text_of(row, 3)?;
        if let Some(since) = self.filter.since_ms
            && started_at < since
        {
            // A call gets its number while it runs: one that had ended by then has only older ones before it.
            let receipt = parse_receipt(id, body)?;
            let ended = started_at.saturating_add(receipt.duration_us / 1_000 + 1);
            let is_over = receipt.state != ReceiptState::Running && ended < since;
            return Ok(if is_over { Examined::AllOlder } else { Examined::Other });
        }
        if !self.tools.is_empty() && !self.tools.iter().any(|tool| tool.is_match(body)) {
            return Ok(Examined::Other);
        }
        let state = text_of(row, 1)?;
        if self.filter.failed && state == b"completed" && !self.exit_code.is_match(body) {
            return Ok(Examined::Other);
        }
        let is_running = state == ReceiptState::Running.word().as_bytes();
        if let Some(path) = &self.path
            && !is_running
            && !path.is_match(body)
            && !path.is_match(text_of(row, 8)?)
        {
            return Ok(Examined::Other);
        }
        if let Some(changed) = &self.changed
            && !changed.is_match(text_of(row, 8)?)
        {
            return Ok(Examined::Other);
        }
        let in_result = match &self.text {
            Some((plain, escaped)) => {
                let in_result = plain.is_match(text_of(row, 6)?) || in_long_result(ledger, conn, row, plain)?;
                if !in_result && !escaped.is_match(body) {
                    return Ok(Examined::Other);
                }
                in_result
            }
            None => true,
        };
        let mut receipt = parse_receipt(id, body)?;
        receipt.changes = if is_running {
            intended_changes(conn, id)?
        } else {
            parse_changes(id, std::str::from_utf8(text_of(row, 8)?).ok().filter(|json| !json.is_empty()))?
        };
        let failed = || !self.filter.failed || has_failed(&receipt);
        let in_text = || self.text.as_ref().is_none_or(|(plain, _)| has_text(&receipt, plain));
        let on_path = || self.filter.path.as_deref().is_none_or(|path| touches(&receipt, path));
        if !(self.is_of_tool(&receipt) && failed() && (in_result || in_text()) && on_path()) {
            return Ok(Examined::Other);
        }
        let summary = ReceiptSummary::new(receipt, row.get(4)?, row.get(5)?, !self.needs_changes());
        Ok(Examined::Match(Box::new(summary)))
    }

    fn needs_changes(&self) -> bool {
        self.path.is_some() || self.changed.is_some()
    }

    fn is_of_tool(&self, receipt: &Receipt) -> bool {
        let tools = &self.filter.tools;
        tools.is_empty() || tools.iter().any(|tool| tool.eq_ignore_ascii_case(&receipt.tool))
    }
}

enum Examined {
    Match(Box<ReceiptSummary>),
    Other,
    /// Neither this one nor any older one matches.
    AllOlder,
}

/// Whether the call failed, or its command did.
fn has_failed(receipt: &Receipt) -> bool {
    use ReceiptState::{Denied, Failed, Interrupted};
    matches!(receipt.state, Failed | Denied | Interrupted) || receipt.exit_code.is_some_and(|code| code != 0)
}

fn in_long_result(ledger: &Ledger, conn: &Connection, row: &Row<'_>, text: &Regex) -> TxResult<bool> {
    let Some(key) = row.get::<_, Option<[u8; 32]>>(7)? else { return Ok(false) };
    let hash = blake3::Hash::from(key).to_hex();
    Ok(ledger.blob_in(conn, hash.as_str()).is_ok_and(|bytes| text.is_match(&bytes)))
}

/// Whether the tool's name, the arguments, what the call declared or its error contain the text.
fn has_text(receipt: &Receipt, text: &Regex) -> bool {
    let is_in = |value: &str| text.is_match(value.as_bytes());
    let effects = serde_json::to_value(&receipt.effects).unwrap_or_default();
    is_in(&receipt.tool)
        || receipt.error.as_deref().is_some_and(is_in)
        || any_leaf(&receipt.input, &is_in)
        || any_leaf(&effects, &is_in)
}

fn any_leaf(value: &Value, is_in: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_in(text),
        Value::Array(items) => items.iter().any(|item| any_leaf(item, is_in)),
        Value::Object(members) => members.values().any(|member| any_leaf(member, is_in)),
        Value::Number(number) => is_in(&number.to_string()),
        Value::Bool(_) | Value::Null => false,
    }
}

/// Whether the call declared or changed `path` or something below it.
fn touches(receipt: &Receipt, path: &Path) -> bool {
    let declared = |effect: &Effect| match effect {
        Effect::Read { path: declared } | Effect::Write { path: declared } => lies_in(declared, path),
        _ => false,
    };
    let changed = |change: &Change| {
        lies_in(&change.path, path) || change.moved_to.as_ref().is_some_and(|to| lies_in(to, path))
    };
    receipt.effects.iter().any(declared) || receipt.changes.iter().any(changed)
}

/// The bytes of a text column; empty if it is NULL.
fn text_of<'r>(row: &'r Row<'_>, column: usize) -> TxResult<&'r [u8]> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) => bytes,
        _ => &[],
    })
}

/// Finds `text` as it is.
pub(crate) fn literal(text: &str, ignore_case: bool) -> Result<Regex, ToolError> {
    pattern(&regex::escape(text), ignore_case)
}

fn pattern(pattern: &str, ignore_case: bool) -> Result<Regex, ToolError> {
    let built = RegexBuilder::new(pattern).case_insensitive(ignore_case).build();
    built.map_err(|error| ToolError::invalid_arguments(format!("This cannot be searched for: {error}")))
}

/// `text` as it is inside of a JSON string.
pub(crate) fn inside_json(text: &str) -> Result<String, ToolError> {
    let quoted = serde_json::to_string(text)?;
    Ok(quoted[1..quoted.len() - 1].to_owned())
}
