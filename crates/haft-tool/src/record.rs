//! How the World records what a call is about to change.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::{
    Change, Denial, DirectoryEvent, ErrorKind, Exit, FileId, FileNode, Finished, GitBlob, GitObjectEvent,
    Hash, Node, ReceiptState, StagedStep, ToolError,
};

/// The name of the session's note with its shell's current directory, which questions about commands show.
pub const WORKING_DIRECTORY_NOTE: &str = "working_directory";

/// The bytes of a file, on their way into the ledger.
pub enum FileContent<'a> {
    /// Not a regular file, or its bytes are not kept.
    None,
    /// All bytes, in memory.
    Bytes(&'a [u8]),
    /// A reader at the beginning of a file too large to hold in memory.
    Reader(&'a mut dyn Read),
}

impl fmt::Debug for FileContent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Reader(_) => f.write_str("Reader"),
        }
    }
}

impl<'a> From<Option<&'a [u8]>> for FileContent<'a> {
    fn from(bytes: Option<&'a [u8]>) -> Self {
        bytes.map_or(Self::None, Self::Bytes)
    }
}

/// A change about to be made.
#[derive(Debug)]
pub struct Intent<'a> {
    /// The path, its state now and its intended state.
    pub change: Change,
    /// The bytes at the path now, if it is a file.
    pub previous: FileContent<'a>,
    /// The temporary name from which the change will be renamed into place; a crash may leave it behind.
    pub temp: Option<PathBuf>,
}

/// How a call ended, or a background task with a receipt of its own.
#[derive(Debug, Clone, Default)]
pub struct CallEnd {
    /// The final state; never `Running`.
    pub state: ReceiptState,
    /// The error's kind, if it failed.
    pub error_kind: Option<ErrorKind>,
    /// The error's message, if it failed.
    pub error: Option<String>,
    /// The text that the caller sees, after `bound`.
    pub result: Option<String>,
    /// The whole text, where `result` is only a part of it.
    pub full_output: Option<String>,
}

impl CallEnd {
    /// The end of a process that has a receipt of its own; an error says why it did not start.
    pub fn of_process(ran: Result<&Finished, &ToolError>) -> Self {
        let failed = |kind, message: String| Self {
            state: if kind == ErrorKind::Interrupted {
                ReceiptState::Interrupted
            } else {
                ReceiptState::Failed
            },
            error_kind: Some(kind),
            error: Some(message),
            ..Self::default()
        };
        match ran.map(|finished| finished.exit) {
            Err(error) => Self { state: ReceiptState::Failed, ..failed(error.kind, error.message.clone()) },
            Ok(Exit::Code(0)) => Self { state: ReceiptState::Completed, ..Self::default() },
            Ok(Exit::Code(code)) => failed(ErrorKind::ExecutionFailed, format!("Exit code {code}")),
            Ok(Exit::Signal(signal)) => {
                failed(ErrorKind::ExecutionFailed, format!("Ended by signal {signal}"))
            }
            Ok(Exit::TimedOut) => failed(ErrorKind::Timeout, "Timed out".to_owned()),
            Ok(Exit::Cancelled) => failed(ErrorKind::Interrupted, "Stopped".to_owned()),
        }
    }
}

/// The output of a running command, for other processes. Dropping this removes it.
pub trait LiveOutput: Send {
    /// Appends output, after `skipped` bytes that are left out. An error only means that no one sees it before the command ends.
    fn push(&mut self, skipped: u64, bytes: &[u8]) -> Result<(), ToolError>;
}

/// The record of one call, to which the crates of the World report while it is performed.
pub trait Record: Send + Sync {
    /// Makes the intents and the previous contents durable. Nothing is changed before this returns, or if it fails.
    fn intend(&self, intents: &mut [Intent<'_>]) -> Result<(), ToolError>;

    /// Reports a change that was made; its `after` is the actual new state.
    fn changed(&self, change: Change);

    /// The file whose locks make calls that write the same path take turns. Commands cannot open it. None by default.
    fn lock_file(&self) -> Result<Option<PathBuf>, ToolError> {
        Ok(None)
    }

    /// The file of stored states. The processes of a command hold a lock on it. If Haft dies, its time is set when the last of
    /// them ends. None by default.
    fn spool_file(&self) -> Result<Option<PathBuf>, ToolError> {
        Ok(None)
    }

    /// Stores that a command without a witness is about to start. Otherwise recovery takes a command without stored states for
    /// one that changed nothing.
    fn unwitnessed(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Reports something that undo will not restore.
    fn not_reversible(&self, reason: String);

    /// Stores the state of a path before a command's first change to it. If the node of a file has no hash, returns hash and
    /// size of the content, so that a large file is read only once. Survives the death of Haft but not a power failure, for the
    /// cost of one write to the page cache.
    fn witness(
        &self,
        path: &Path,
        node: &Node,
        content: FileContent<'_>,
    ) -> Result<Option<(Hash, u64)>, ToolError>;

    /// The same for an entry of a directory that the command created, under its current path. Needed if another program put the
    /// entry there, or if it gets a file of another program.
    fn witness_in_new(
        &self,
        path: &Path,
        node: &Node,
        content: FileContent<'_>,
    ) -> Result<Option<(Hash, u64)>, ToolError> {
        self.witness(path, node, content)
    }

    /// Stores what a command is about to do to a directory. Without this, recovery could not tell moved files from new
    /// ones.
    fn witness_directory(&self, event: DirectoryEvent<'_>) -> Result<(), ToolError>;

    /// Stores whether a file or directory inside a new directory is the command's, by a number that no later file gets: other
    /// programs may put something there, too.
    fn witness_own(&self, _file: FileId, _is_own: bool) -> Result<(), ToolError> {
        Ok(())
    }

    /// Withdraws the last `witness_directory`, because the operation failed.
    fn cancel_directory(&self) -> Result<(), ToolError>;

    /// The bytes with this hash that `witness` has stored for this call.
    fn stored_content(&self, _hash: &str) -> Result<Option<Vec<u8>>, ToolError> {
        Ok(None)
    }

    /// The files that earlier calls found with this hash before they changed them, by path.
    fn files_before_calls(&self, _hash: &str) -> Result<Vec<(PathBuf, FileNode)>, ToolError> {
        Ok(Vec::new())
    }

    /// Keeps the content of a list of git objects that the call's command wrote, so that later calls can tell which objects it
    /// wrote.
    fn keep_index(&self, _content: &mut dyn Read) -> Result<(), ToolError> {
        Ok(())
    }

    /// How recorded calls, this one included, affected a blob, in the order of the calls.
    fn blob_events(&self, _blob: &GitBlob<'_>) -> Result<Vec<GitObjectEvent>, ToolError> {
        Err(ToolError::internal("this record knows no earlier calls"))
    }

    /// Whether an earlier call left a file with this hash, and no completed call left one where it `was_judged`.
    fn is_from_call(
        &self,
        _hash: &str,
        _was_judged: &dyn Fn(&Path, &FileNode) -> bool,
    ) -> Result<bool, ToolError> {
        Ok(true)
    }

    /// Whether another call was running at `changed_at` (milliseconds since 1970) and has not ended yet.
    fn runs_beside_another(&self, _changed_at: u64) -> Result<bool, ToolError> {
        Ok(true)
    }

    /// Whether another call has started since this one.
    fn was_followed(&self) -> Result<bool, ToolError> {
        Ok(true)
    }

    /// Stores the steps of a restore before the first of them, so that recovery can undo those that were made.
    fn begin_restore(&self, _steps: &[StagedStep]) -> Result<(), ToolError> {
        Ok(())
    }

    /// Stores that `made` steps of the restore have been made. The last of them may only be about to be made.
    fn restore_step(&self, _made: usize) -> Result<(), ToolError> {
        Ok(())
    }

    /// Stores that all steps of the restore have been made, before what they replaced is removed.
    fn end_restore(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Reports the witnessed changes of a command when all its processes are gone. Of the states stored by
    /// `witness`, only those that these changes need are kept.
    fn witnessed(&self, changes: Vec<Change>);

    /// Reports how the kernel held the call to its scope.
    fn enforced(&self, how: String);

    /// Reports what the scope refused to the call's command.
    fn refused(&self, denials: &[Denial]);

    /// Reports how the call's command ended.
    fn exited(&self, _exit: Exit) {}

    /// Opens the record of a background task that the call starts. It has a receipt of its own.
    fn open_task(&self) -> Result<Arc<dyn Record>, ToolError> {
        Err(ToolError::internal("this record has no tasks"))
    }

    /// Where other processes read the output of the call's command while it runs, if they can.
    fn live_output(&self) -> Option<Box<dyn LiveOutput>> {
        None
    }

    /// The number of the receipt; 0 as long as it has none.
    fn receipt_id(&self) -> i64 {
        0
    }

    /// Writes the receipt of a background task.
    fn finish_task(&self, _end: CallEnd) -> Result<(), ToolError> {
        Err(ToolError::internal("this record has no task"))
    }

    /// The newest value that a call of the session stored under a name.
    fn note(&self, _name: &str) -> Result<Option<Value>, ToolError> {
        Ok(None)
    }

    /// Stores a value for later calls of the session. It holds once this call has completed.
    fn set_note(&self, _name: &str, _value: Value) {}
}

/// The record of code that only reads: refuses every change.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOnlyRecord;

impl ReadOnlyRecord {
    fn refuse() -> ToolError {
        ToolError::internal("nothing may be changed here")
    }
}

impl Record for ReadOnlyRecord {
    fn intend(&self, _intents: &mut [Intent<'_>]) -> Result<(), ToolError> {
        Err(Self::refuse())
    }

    fn changed(&self, _change: Change) {}

    fn not_reversible(&self, _reason: String) {}

    fn witness(
        &self,
        _path: &Path,
        _node: &Node,
        _content: FileContent<'_>,
    ) -> Result<Option<(Hash, u64)>, ToolError> {
        Err(Self::refuse())
    }

    fn witness_directory(&self, _event: DirectoryEvent<'_>) -> Result<(), ToolError> {
        Err(Self::refuse())
    }

    fn cancel_directory(&self) -> Result<(), ToolError> {
        Ok(())
    }

    fn witnessed(&self, _changes: Vec<Change>) {}

    fn enforced(&self, _how: String) {}

    fn refused(&self, _denials: &[Denial]) {}
}
