//! The first bytes of a file, cut on a character.

use std::io::Read;
use std::path::Path;

use haft_tool::{OpenFile, ToolError, World};

use super::charset::decode;

/// The first bytes of a file.
pub(crate) struct FilePrefix {
    pub(crate) bytes: Vec<u8>,
    /// How many bytes of the file follow.
    pub(crate) missing_bytes: u64,
    /// Whether the limit was inside a character, which was left out.
    pub(crate) split_character: bool,
}

impl FilePrefix {
    /// The bytes as text in a detected encoding; `None` if they are not text.
    pub(crate) fn text(&self) -> Option<String> {
        decode(&self.bytes).map(|decoded| decoded.text)
    }

    /// Like [`Self::text`], but anything else is an error.
    pub(crate) fn require_text(&self, path: &Path) -> Result<String, ToolError> {
        self.text().ok_or_else(|| {
            let size = self.bytes.len() as u64 + self.missing_bytes;
            ToolError::failed(format!("{} is a binary file ({size} bytes), not text", path.display()))
        })
    }
}

/// Reads at most the first `max_bytes` bytes.
pub(crate) fn read_prefix(world: &dyn World, path: &Path, max_bytes: u64) -> Result<FilePrefix, ToolError> {
    let OpenFile { reader, size, .. } = world.files().open(path)?;
    let mut bytes = Vec::new();
    reader
        .take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| ToolError::io(format!("read {}", path.display()), &error))?;
    let read = bytes.len() as u64;
    if read <= max_bytes {
        return Ok(FilePrefix { bytes, missing_bytes: 0, split_character: false });
    }
    bytes.pop();
    let end = last_boundary(&bytes);
    let split_character = end < bytes.len();
    bytes.truncate(end);
    let missing_bytes = size.max(read) - bytes.len() as u64;
    Ok(FilePrefix { bytes, missing_bytes, split_character })
}

/// The end of the last whole character.
fn last_boundary(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return bytes.len() & !1;
    }
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_inside_a_character_moves_before_it() {
        assert_eq!(last_boundary("aä".as_bytes()), 3);
        assert_eq!(last_boundary(&"aä".as_bytes()[..2]), 1);
        assert_eq!(last_boundary(&"a日".as_bytes()[..3]), 1);
        assert_eq!(last_boundary(b"a\xffb\xe6"), 4, "not UTF-8 at all");
        assert_eq!(last_boundary(b"\xff\xfea\0b"), 4);
    }
}
