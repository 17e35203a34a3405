//! Calls that run now, in any process.

use haft_tool::{Receipt, ToolError, now_ms};

use crate::process::ProcessIdentity;
use crate::query::first_receipt;
use crate::{Ledger, sql};

/// A call that runs, and the process that performs it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningCall {
    /// The receipt so far.
    pub receipt: Receipt,
    /// The process of Haft.
    pub pid: u32,
}

impl Ledger {
    /// The calls that run now, oldest first. Those whose process is gone are left to recovery, and those that cannot be read are left out.
    pub fn running_calls(&self) -> Result<Vec<RunningCall>, ToolError> {
        let now = now_ms();
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::ALL_RUNNING)?;
            let mut rows = statement.query([])?;
            let mut calls = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, process, since): (i64, String, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let process = ProcessIdentity::parse(&process).filter(|process| !process.is_gone(since, now));
                if let Some(process) = process
                    && let Some(receipt) =
                        self.skip_damaged(id, first_receipt(conn, sql::RECEIPT, [id]))?.flatten()
                {
                    calls.push(RunningCall { receipt, pid: process.pid() });
                }
            }
            Ok(calls)
        })
    }

    /// The numbers of these calls. Reads none of their receipts.
    pub fn running_call_ids(&self) -> Result<Vec<i64>, ToolError> {
        let now = now_ms();
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::ALL_RUNNING)?;
            let mut rows = statement.query([])?;
            let mut ids = Vec::new();
            while let Some(row) = rows.next()? {
                let (id, process, since): (i64, String, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                if ProcessIdentity::parse(&process).is_some_and(|process| !process.is_gone(since, now)) {
                    ids.push(id);
                }
            }
            Ok(ids)
        })
    }
}
