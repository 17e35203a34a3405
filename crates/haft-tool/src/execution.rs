//! The status of a call: pending, running, completed.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::{Output, ToolError};

/// The time in milliseconds since 1970, the form in which all times are written.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// How far a running call has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// From 0.0 to 1.0, if the end is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f32>,
    /// A status line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The number of files, bytes or whatever else the tool counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units_processed: Option<u64>,
    /// What the call has output since the last report, or the newest part of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

impl Progress {
    /// Only a status line.
    pub fn message(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::default() }
    }

    /// Only output.
    pub fn output(output: impl Into<String>) -> Self {
        Self { output: Some(output.into()), ..Self::default() }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// The tool gave a result.
    Success {
        /// What it gave.
        output: Output,
    },
    /// There is an error instead.
    Error {
        /// Which one.
        error: ToolError,
    },
}

/// The status of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Execution {
    /// Requested; not started.
    Pending {
        /// The caller's id for the call.
        call_id: String,
        /// The tool's name.
        tool_name: String,
        /// When it was requested.
        requested_at: u64,
    },
    /// Being performed.
    Running {
        /// The caller's id for the call.
        call_id: String,
        /// The tool's name.
        tool_name: String,
        /// When it started.
        started_at: u64,
        /// When this was last true.
        last_update_at: u64,
        /// How far it has come, if it said so.
        #[serde(skip_serializing_if = "Option::is_none")]
        progress: Option<Progress>,
    },
    /// Done, one way or the other.
    Completed {
        /// The caller's id for the call.
        call_id: String,
        /// The tool's name.
        tool_name: String,
        /// When it started.
        started_at: u64,
        /// When it ended.
        completed_at: u64,
        /// How it ended.
        outcome: Outcome,
    },
}
