//! What the server needs of the program that it is a part of.

use std::path::Path;

use haft_ledger::SessionInfo;
use haft_runtime::Runtime;
use haft_tool::ToolError;

use crate::api::types::{Attachment, NewMessage, NewRun, Provider, RuleChange, RuleChanged};
use crate::image_type::image_type;

/// The settings, runtimes and runs of the program.
pub trait Backend: Send + Sync + 'static {
    /// A runtime in which calls in this workspace are decided as in a session there, with the tools of a dialect.
    fn runtime(&self, workspace: &Path, dialect: Option<&str>) -> Result<Runtime, ToolError>;

    /// Adds a rule to the settings.
    fn add_rule(&self, change: &RuleChange) -> Result<RuleChanged, ToolError>;

    /// Removes a rule from the settings.
    fn remove_rule(&self, change: &RuleChange) -> Result<RuleChanged, ToolError>;

    /// Whether a rule with this origin is in settings that [`Backend::remove_rule`] changes.
    fn can_remove(&self, origin: &str) -> bool;

    /// The providers of models that runs can use.
    fn providers(&self) -> Vec<Provider>;

    /// Starts a run in a process of its own, which outlives the server, and returns its session.
    fn start_run(&self, run: &NewRun, attachments: &[DecodedAttachment]) -> Result<String, ToolError>;

    /// Continues the run of a session in the same way.
    fn continue_run(
        &self,
        session: &SessionInfo,
        message: &NewMessage,
        attachments: &[DecodedAttachment],
    ) -> Result<(), ToolError>;

    /// Interrupts the turn that a process drives, as Ctrl-C does.
    fn interrupt(&self, pid: u32) -> Result<(), ToolError>;
}

/// A file for the model.
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
    /// The file, if a model can be shown it.
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
