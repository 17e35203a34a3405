//! Notes that outlive a session, in one Markdown file of the user's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_tool::{Effect, ErrorKind, ToolError, World};

use super::contents::contents;
use crate::settings::MemoryFile;

/// The most bytes that a memory is read with.
const MOST_BYTES: u64 = 16 << 20;

/// Where the memory may lie, the best place first.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    places: Vec<PathBuf>,
}

impl Memory {
    /// The memory of these settings, for the user whose home this is.
    pub(crate) fn new(settings: &MemoryFile, home: Option<OsString>) -> Self {
        let home = home.map(PathBuf::from).filter(|home| home.is_absolute());
        let below_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let places = match &settings.path {
            Some(path) => match path.strip_prefix("~") {
                Ok(rest) => home.iter().map(|home| home.join(rest)).collect(),
                Err(_) => vec![path.clone()],
            },
            None => [".clawft/workspace/memory/MEMORY.md", ".nanobot/workspace/memory/MEMORY.md"]
                .into_iter()
                .filter_map(below_home)
                .collect(),
        };
        Self { places: places.into_iter().filter(|place| place.is_absolute()).collect() }
    }

    /// Every file that the memory may be.
    pub(crate) fn places(&self) -> &[PathBuf] {
        &self.places
    }

    /// What a call on the memory touches.
    pub(crate) fn effects(&self, effect: fn(PathBuf) -> Effect) -> Result<Vec<Effect>, ToolError> {
        if self.places.is_empty() {
            return Err(ToolError::failed(
                "there is no place for a memory: $HOME is not set; name a file in haft.toml as tools.memory.path",
            ));
        }
        Ok(self.places.iter().cloned().map(effect).collect())
    }

    /// The file that there is, or the best place for a new one.
    fn place(&self, world: &dyn World) -> Result<(&Path, bool), ToolError> {
        for place in &self.places {
            match world.files().kind(place) {
                Ok(_) => return Ok((place, true)),
                Err(error) if error.kind == ErrorKind::FileNotFound => {}
                Err(error) => return Err(error),
            }
        }
        let best = self.places.first().ok_or_else(|| ToolError::internal("a memory without a place"))?;
        Ok((best, false))
    }

    /// All that the memory holds; nothing if there is none yet.
    pub(crate) fn read(&self, world: &dyn World) -> Result<Option<String>, ToolError> {
        let (path, exists) = self.place(world)?;
        if !exists {
            return Ok(None);
        }
        let held = contents(world, path, MOST_BYTES)?;
        if held.missing > 0 {
            return Err(ToolError::failed(format!(
                "{} has more than {MOST_BYTES} bytes, which is no memory any more; make it shorter",
                path.display()
            )));
        }
        held.only_text(path).map(Some)
    }

    /// Puts `content` behind what the memory holds, with a blank line between, or in its place; tells where that is.
    pub(crate) fn write(&self, world: &dyn World, content: &str, append: bool) -> Result<PathBuf, ToolError> {
        let (path, _) = self.place(world)?;
        let written = world.files().update(path, &mut |current| {
            let mut bytes = current.filter(|_| append).unwrap_or_default().to_vec();
            bytes.extend_from_slice(gap(&bytes));
            bytes.extend_from_slice(content.as_bytes());
            Ok(bytes)
        })?;
        Ok(written.path)
    }
}

/// What makes a blank line after `text`.
fn gap(text: &[u8]) -> &'static [u8] {
    match text {
        [] => b"",
        [.., b'\n', b'\n'] => b"",
        [.., b'\n'] => b"\n",
        _ => b"\n\n",
    }
}

/// The paragraphs that hold `query`, capitals or not.
pub(crate) fn paragraphs(text: &str, query: &str) -> Vec<String> {
    let query = query.to_lowercase();
    let mut found = Vec::new();
    let mut paragraph = String::new();
    for line in text.lines().chain([""]) {
        if !line.trim().is_empty() {
            if !paragraph.is_empty() {
                paragraph.push('\n');
            }
            paragraph.push_str(line);
            continue;
        }
        let whole = std::mem::take(&mut paragraph);
        if !whole.is_empty() && whole.to_lowercase().contains(&query) {
            found.push(whole);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_what_blank_lines_part() {
        let text = "# Ä one\nTwo\n \r\nthree two\n\n\n\nfour";
        assert_eq!(paragraphs(text, "TWO"), ["# Ä one\nTwo", "three two"]);
        assert_eq!(paragraphs(text, "ä ONE"), ["# Ä one\nTwo"]);
        assert_eq!(paragraphs(text, "four"), ["four"]);
        assert_eq!(paragraphs(text, "none"), [""; 0]);
        assert_eq!(paragraphs("", ""), [""; 0]);
    }

    #[test]
    fn the_places_follow_the_settings() {
        let places = |path: Option<&str>, home: Option<&str>| {
            let settings = MemoryFile { path: path.map(PathBuf::from) };
            Memory::new(&settings, home.map(OsString::from)).places
        };
        let both = ["/h/.clawft/workspace/memory/MEMORY.md", "/h/.nanobot/workspace/memory/MEMORY.md"];
        assert_eq!(places(None, Some("/h")), both.map(PathBuf::from));
        assert_eq!(places(Some("~/notes.md"), Some("/h")), [PathBuf::from("/h/notes.md")]);
        assert_eq!(places(Some("/n.md"), None), [PathBuf::from("/n.md")]);
        assert_eq!(places(Some("n.md"), Some("/h")), [""; 0].map(PathBuf::from));
        assert_eq!(places(None, None), [""; 0].map(PathBuf::from));
    }
}
