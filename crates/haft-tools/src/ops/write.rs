//! Writing a whole file.

use std::path::Path;

use haft_tool::{ToolError, World, Written};

use super::text::{Charset, decode, encode};

/// What a write did.
pub(crate) struct Wrote {
    pub(crate) written: Written,
    pub(crate) bytes: usize,
    /// What the caller should know besides.
    pub(crate) note: Option<String>,
}

/// Makes `content` the whole of the file. One that is marked as UTF-16 or with a byte-order mark stays so.
pub(crate) fn write(world: &dyn World, path: &Path, content: &str) -> Result<Wrote, ToolError> {
    let mut note = None;
    let mut bytes = 0;
    let written = world.files().update(path, &mut |current| {
        let like = current.filter(|bytes| marked(bytes)).and_then(decode);
        let made = match like {
            Some(like) if !content.starts_with('\u{feff}') => {
                let name = if like.charset == Charset::Utf8 {
                    "UTF-8 with a byte-order mark"
                } else {
                    like.charset.name()
                };
                note = Some(format!("the file was {name}, and stays so"));
                encode(content, like.charset, like.bom)
                    .map_err(|missing| ToolError::internal(format!("{name} has no character {missing:?}")))?
            }
            _ => content.as_bytes().to_vec(),
        };
        bytes = made.len();
        Ok(made)
    })?;
    Ok(Wrote { written, bytes, note })
}

/// Whether the bytes start with a byte-order mark.
fn marked(bytes: &[u8]) -> bool {
    [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| bytes.starts_with(mark))
}
