//! The agent's memory: one Markdown file that outlives sessions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_tool::{Effect, ErrorKind, ToolError, World};

use super::prefix::read_prefix;
use crate::settings::MemorySettings;

const MAX_MEMORY_BYTES: u64 = 16 << 20;

/// The memory file; the first of the candidates that exists, else the first.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    candidates: Vec<PathBuf>,
}

impl Memory {
    /// The memory of these settings, for the user with this home directory.
    pub(crate) fn new(settings: &MemorySettings, home: Option<OsString>) -> Self {
        let home = home.map(PathBuf::from).filter(|home| home.is_absolute());
        let below_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let candidates = match &settings.path {
            Some(path) => match path.strip_prefix("~") {
                Ok(rest) => home.iter().map(|home| home.join(rest)).collect(),
                Err(_) => vec![path.clone()],
            },
            None => [".clawft/workspace/memory/MEMORY.md", ".nanobot/workspace/memory/MEMORY.md"]
                .into_iter()
                .filter_map(below_home)
                .collect(),
        };
        Self { candidates: candidates.into_iter().filter(|path| path.is_absolute()).collect() }
    }

    /// Every file that the memory may be.
    pub(crate) fn candidates(&self) -> &[PathBuf] {
        &self.candidates
    }

    /// The effects of a call on the memory.
    pub(crate) fn effects(&self, effect: fn(PathBuf) -> Effect) -> Result<Vec<Effect>, ToolError> {
        if self.candidates.is_empty() {
            return Err(ToolError::failed(
                "there is no memory file, because HOME is not set; set tools.memory.path in haft.toml",
            ));
        }
        Ok(self.candidates.iter().cloned().map(effect).collect())
    }

    /// The file, and whether it exists.
    fn path(&self, world: &dyn World) -> Result<(&Path, bool), ToolError> {
        for path in &self.candidates {
            match world.files().kind(path) {
                Ok(_) => return Ok((path, true)),
                Err(error) if error.kind == ErrorKind::FileNotFound => {}
                Err(error) => return Err(error),
            }
        }
        let first = self.candidates.first().ok_or_else(|| ToolError::internal("no path for the memory"))?;
        Ok((first, false))
    }

    /// The whole memory; `None` if there is no file yet.
    pub(crate) fn read(&self, world: &dyn World) -> Result<Option<String>, ToolError> {
        let (path, exists) = self.path(world)?;
        if !exists {
            return Ok(None);
        }
        let content = read_prefix(world, path, MAX_MEMORY_BYTES)?;
        if content.missing_bytes > 0 {
            return Err(ToolError::failed(format!(
                "the memory {} has more than {MAX_MEMORY_BYTES} bytes; make it shorter",
                path.display()
            )));
        }
        content.require_text(path).map(Some)
    }

    /// Appends `content` after a blank line, or replaces the memory by it. Returns the path.
    pub(crate) fn write(&self, world: &dyn World, content: &str, append: bool) -> Result<PathBuf, ToolError> {
        let (path, _) = self.path(world)?;
        let written = world.files().update(path, &mut |current| {
            let mut bytes = current.filter(|_| append).unwrap_or_default().to_vec();
            bytes.extend_from_slice(gap(&bytes));
            bytes.extend_from_slice(content.as_bytes());
            Ok(bytes)
        })?;
        Ok(written.path)
    }
}

/// The line breaks that make a blank line after `text`.
fn gap(text: &[u8]) -> &'static [u8] {
    match text {
        [] => b"",
        [.., b'\n', b'\n'] => b"",
        [.., b'\n'] => b"\n",
        _ => b"\n\n",
    }
}

/// The paragraphs that contain `query`, ignoring case.
pub(crate) fn paragraphs(text: &str, query: &str) -> Vec<String> {
    let query = query.to_lowercase();
    let lines: Vec<&str> = text.lines().collect();
    let paragraphs = lines.split(|line| line.trim().is_empty()).map(|lines| lines.join("\n"));
    paragraphs.filter(|text| !text.is_empty() && text.to_lowercase().contains(&query)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_separated_by_blank_lines() {
        let text = "# Ä one\nTwo\n \r\nthree two\n\n\n\nfour";
        assert_eq!(paragraphs(text, "TWO"), ["# Ä one\nTwo", "three two"]);
        assert_eq!(paragraphs(text, "ä ONE"), ["# Ä one\nTwo"]);
        assert_eq!(paragraphs(text, "four"), ["four"]);
        assert_eq!(paragraphs(text, "none"), [""; 0]);
        assert_eq!(paragraphs("", ""), [""; 0]);
    }

    #[test]
    fn candidates_follow_the_settings() {
        let candidates = |path: Option<&str>, home: Option<&str>| {
            let settings = MemorySettings { path: path.map(PathBuf::from) };
            Memory::new(&settings, home.map(OsString::from)).candidates
        };
        let both = ["/h/.clawft/workspace/memory/MEMORY.md", "/h/.nanobot/workspace/memory/MEMORY.md"];
        assert_eq!(candidates(None, Some("/h")), both.map(PathBuf::from));
        assert_eq!(candidates(Some("~/notes.md"), Some("/h")), [PathBuf::from("/h/notes.md")]);
        assert_eq!(candidates(Some("/n.md"), None), [PathBuf::from("/n.md")]);
        assert_eq!(candidates(Some("n.md"), Some("/h")), [""; 0].map(PathBuf::from));
        assert_eq!(candidates(None, None), [""; 0].map(PathBuf::from));
    }
}
