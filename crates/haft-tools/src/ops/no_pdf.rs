//! Stands in for `pdf.rs` in builds without the feature `pdf`.

use haft_tool::{Cancel, ToolError};

use super::read::PdfPages;

pub(crate) fn read(
    _bytes: &[u8],
    _range: Option<&str>,
    name: &str,
    _cancel: &Cancel,
) -> Result<PdfPages, ToolError> {
    Err(ToolError::failed(format!(
        "{name} is a PDF, and this build of Haft cannot read PDF files (feature `pdf`)"
    )))
}
