//! Writing a whole file.

use std::path::Path;

use haft_tool::{ToolError, World, Written};

use super::charset::{Charset, decode, encode};

/// The result of a write.
pub(crate) struct WrittenText {
    pub(crate) written: Written,
    pub(crate) bytes: usize,
    /// A remark for the caller.
    pub(crate) note: Option<String>,
}

/// Replaces the whole file by `content`. A file with a byte-order mark keeps its mark and encoding.
pub(crate) fn write(world: &dyn World, path: &Path, content: &str) -> Result<WrittenText, ToolError> {
    let mut note = None;
    let mut bytes = 0;
    let written = world.files().update(path, &mut |current| {
        let existing = current.filter(|bytes| has_bom(bytes)).and_then(decode);
        let encoded = match existing {
            Some(existing) if !content.starts_with('\u{feff}') => {
                let name = match existing.charset {
                    Charset::Utf8 => "UTF-8 with a byte-order mark",
                    charset => charset.name(),
                };
                note = Some(format!("the file was {name}, and stays so"));
                encode(content, existing.charset, existing.bom)
                    .map_err(|missing| ToolError::internal(format!("{name} has no character {missing:?}")))?
            }
            _ => content.as_bytes().to_vec(),
        };
        bytes = encoded.len();
        Ok(encoded)
    })?;
    Ok(WrittenText { written, bytes, note })
}

fn has_bom(bytes: &[u8]) -> bool {
    [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"].iter().any(|bom| bytes.starts_with(bom))
}
