//! What the server needs from the program that runs it.

use std::path::Path;

use haft_ledger::SessionInfo;
use haft_runtime::Runtime;
use haft_tool::ToolError;

use crate::api::types::{Attachment, NewMessage, NewRun, Provider, RuleChange, RuleChanged};
use crate::image_type::image_type;

/// The program's settings, runtimes and runs.
pub trait Backend: Send + Sync + 'static {
    /// A runtime that decides calls as a session in this workspace would, with the tools of a dialect.
    fn runtime(&self, workspace: &Path, dialect: Option<&str>) -> Result<Runtime, ToolError>;

    /// Adds a rule to the settings.
    fn add_rule(&self, change: &RuleChange) -> Result<RuleChanged, ToolError>;

    /// Removes a rule from the settings.
    fn remove_rule(&self, change: &RuleChange) -> Result<RuleChanged, ToolError>;

    /// Whether [`Backend::remove_rule`] can remove a rule with this origin.
    fn can_remove(&self, origin: &str) -> bool;

    /// The model providers that runs can use.
    fn providers(&self) -> Vec<Provider>;

    /// Starts a run in its own process, which outlives the server, and returns its session.
    fn start_run(&self, run: &NewRun, attachments: &[DecodedAttachment]) -> Result<String, ToolError>;

    /// Continues a session's run in the same way.
    fn continue_run(
        &self,
        session: &SessionInfo,
        message: &NewMessage,
        attachments: &[DecodedAttachment],
    ) -> Result<(), ToolError>;

    /// Interrupts the turn that a process is driving, as Ctrl-C does.
    fn interrupt(&self, pid: u32) -> Result<(), ToolError>;
}

/// A decoded file for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodedAttachment {
    /// Text, with the file's name.
    Text {
        /// The name.
        name: String,
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// The media type.
        media_type: &'static str,
        /// The bytes in Base64.
        data: String,
    },
}

impl DecodedAttachment {
    /// Decodes a file; only text and images that models can see are accepted.
    pub(crate) fn decode(given: &Attachment) -> Result<Self, ToolError> {
        use base64::Engine as _;
        let invalid = |why: &str| ToolError::invalid_arguments(format!("{}: {why}", given.name));
        let engine = &base64::engine::general_purpose::STANDARD;
        let bytes = engine.decode(&given.data).map_err(|_| invalid("the data is not Base64."))?;
        if let Some(media_type) = image_type(&bytes) {
            return Ok(Self::Image { media_type, data: given.data.clone() });
        }
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(Self::Text { name: given.name.clone(), text }),
            _ => Err(invalid("only text and images (PNG, JPEG, GIF, WebP) can be attached.")),
        }
    }
}
