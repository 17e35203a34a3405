//! The beginning of a file, ending on a whole character.

use std::io::Read;
use std::path::Path;

use haft_tool::{OpenFile, ToolError, World};

use super::text::decode;

/// The beginning of a file.
pub(crate) struct Contents {
    pub(crate) bytes: Vec<u8>,
    /// How many more bytes the file has.
    pub(crate) missing: u64,
}

impl Contents {
    /// The bytes as text, in whatever encoding; `None` if they are not text.
    pub(crate) fn text(&self) -> Option<String> {
        decode(&self.bytes).map(|decoded| decoded.text)
    }

    /// The same, where anything but text is an error.
    pub(crate) fn only_text(&self, path: &Path) -> Result<String, ToolError> {
        self.text().ok_or_else(|| {
            let size = self.bytes.len() as u64 + self.missing;
            ToolError::failed(format!("{} is a binary file ({size} bytes), not text", path.display()))
        })
    }
}

/// Reads at most the first `most` bytes.
pub(crate) fn contents(world: &dyn World, path: &Path, most: u64) -> Result<Contents, ToolError> {
    let OpenFile { reader, size, .. } = world.files().open(path)?;
    let mut bytes = Vec::new();
    reader
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| ToolError::io(format!("read {}", path.display()), &error))?;
    let seen = bytes.len() as u64;
    if seen <= most {
        return Ok(Contents { bytes, missing: 0 });
    }
    bytes.pop();
    let whole = whole_characters(&bytes);
    bytes.truncate(whole);
    let missing = size.max(seen) - bytes.len() as u64;
    Ok(Contents { bytes, missing })
}

/// Where the last whole character ends, if the bytes are cut off inside one.
fn whole_characters(bytes: &[u8]) -> usize {
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
        assert_eq!(whole_characters("aä".as_bytes()), 3);
        assert_eq!(whole_characters(&"aä".as_bytes()[..2]), 1);
        assert_eq!(whole_characters(&"a日".as_bytes()[..3]), 1);
        assert_eq!(whole_characters(b"a\xffb\xe6"), 4, "not UTF-8 at all");
        assert_eq!(whole_characters(b"\xff\xfea\0b"), 4);
    }
}
