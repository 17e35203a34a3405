//! What the API sends and takes, as JSON. The OpenAPI document is made from these types.

mod calls;
mod changes;
mod questions;
mod rules;
mod runs;
mod server;
mod sessions;
mod undo;

pub(crate) use calls::{CallDecision, CallDenial, CallDetail, CallList, CallSummary, OutputPart};
pub(crate) use changes::{ChangeEntry, ChangeList, ChangeSide, ChangedFiles, VersionDiff};
pub(crate) use questions::{AnswerHold, Answered, QuestionAnswer, QuestionInfo, QuestionList};
pub(crate) use rules::{ExplainRequest, Explained, ListedRules, RuleInfo};
pub use rules::{RuleChange, RuleChanged};
pub use runs::{Attachment, NewMessage, NewRun};
pub(crate) use runs::{MessageCall, MessageList, RunMessage, RunSession};
pub use server::Provider;
pub(crate) use server::{ErrorBody, ErrorInfo, Meta, Nothing, ToolDefinition, ToolList};
pub(crate) use sessions::{Now, Run, SessionDetail, SessionEntry, SessionList, SubagentInfo};
pub(crate) use undo::{
    CallWithReason, MergedFile, PathConflict, UndoDone, UndoPlanInfo, UndoRequest, UndoWhat,
};
