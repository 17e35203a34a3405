//! Which process drives a run: one at a time.

use haft_tool::{ErrorKind, ToolError, now_ms};
use rusqlite::{OptionalExtension, params};

use crate::Ledger;
use crate::database::{Durability, execute};
use crate::process::ProcessIdentity;
use crate::sql::{self, int};

/// The right to drive the run of a session, until dropped. It ends with the process, too.
#[derive(Debug)]
pub struct RunDriver {
    ledger: Ledger,
    session: String,
}

/// A run that a process drives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInProgress {
    /// Its session.
    pub session: String,
    /// The process; `None` if it is in another pid namespace, where its number means another process than here.
    pub pid: Option<u32>,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
}

impl Ledger {
    /// The runs that processes drive now, the longest driven first.
    pub fn driven_runs(&self) -> Result<Vec<RunInProgress>, ToolError> {
        let now = now_ms();
        self.db.read(|conn| {
            let mut statement = conn.prepare_cached(sql::ALL_DRIVERS)?;
            let mut rows = statement.query([])?;
            let mut runs = Vec::new();
            while let Some(row) = rows.next()? {
                let (session, process, since): (String, String, u64) =
                    (row.get(0)?, row.get(1)?, row.get(2)?);
                let process = ProcessIdentity::parse(&process).filter(|process| !process.is_gone(since, now));
                runs.extend(process.map(|process| RunInProgress {
                    session,
                    pid: process.visible_pid(),
                    since,
                }));
            }
            runs.sort_by_key(|run: &RunInProgress| run.since);
            Ok(runs)
        })
    }

    /// Takes the right to drive the run of a session. Fails with [`ErrorKind::Conflict`] if another driver has it.
    pub fn drive_run(&self, session: &str) -> Result<RunDriver, ToolError> {
        let now = now_ms();
        self.db.write(Durability::ProcessCrash, |conn| {
            let mut statement = conn.prepare_cached(sql::DRIVER_OF)?;
            let driver: Option<(String, u64)> =
                statement.query_row([session], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            if let Some((process, since)) = driver
                && let Some(process) = ProcessIdentity::parse(&process)
                && !process.is_gone(since, now)
            {
                return Err(driven(session, process.pid()).into());
            }
            let process = ProcessIdentity::current().to_text();
            execute(conn, sql::INSERT_DRIVER, params![session, process, int(now)])?;
            Ok(())
        })?;
        Ok(RunDriver { ledger: self.clone(), session: session.to_owned() })
    }
}

impl Drop for RunDriver {
    fn drop(&mut self) {
        let process = ProcessIdentity::current().to_text();
        // If it fails, the right ends with the process.
        let _ = self.ledger.db.write(Durability::ProcessCrash, |conn| {
            execute(conn, sql::DELETE_DRIVER, params![self.session, process])?;
            Ok(())
        });
    }
}

fn driven(session: &str, pid: u32) -> ToolError {
    let message = format!(
        "Run {session} is being driven by process {pid}. Wait until it has ended, or continue a copy with --fork-session."
    );
    ToolError::new(ErrorKind::Conflict, message)
}
