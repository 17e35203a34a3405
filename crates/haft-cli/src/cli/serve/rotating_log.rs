//! A log of bounded size: when it is too long, it is renamed, replacing the one renamed before, and a new one is begun. Each line
//! must be one write, because the files are exchanged between writes.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use haft_files::append_private;
use haft_tool::ToolError;

pub(super) struct RotatingLog {
    path: PathBuf,
    max_bytes: u64,
    file: File,
    /// Bytes written since the file was opened.
    written: u64,
}

impl RotatingLog {
    pub(super) fn open(path: PathBuf, max_bytes: u64) -> Result<Self, ToolError> {
        let file = append_private(&path, max_bytes)?;
        Ok(Self { path, max_bytes, file, written: 0 })
    }
}

impl Write for RotatingLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.written > self.max_bytes {
            self.file = append_private(&self.path, self.max_bytes).map_err(io::Error::other)?;
            self.written = 0;
        }
        let count = self.file.write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test looks at its own files")]
    fn two_files_hold_whole_lines_that_were_written_last() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        let mut log = RotatingLog::open(path.clone(), 100).unwrap();
        for number in 0..1_000 {
            log.write_all(format!("line {number}\n").as_bytes()).unwrap();
        }
        let bytes = std::fs::metadata(&path).unwrap().len();
        assert!(bytes < 200, "{bytes} bytes");
        let older: Vec<_> =
            std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let older: Vec<_> = older.iter().filter(|other| **other != path).collect();
        assert_eq!(older.len(), 1, "{older:?}");
        let text = std::fs::read_to_string(older[0]).unwrap() + &std::fs::read_to_string(&path).unwrap();
        let count = text.lines().count();
        let last: String = (1_000 - count..1_000).map(|number| format!("line {number}\n")).collect();
        assert_eq!(text, last);
    }
}
