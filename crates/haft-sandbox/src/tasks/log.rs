//! The output of a task in a bounded file: the first half stays, the second half is a ring.
//!
//! The file has no name, so no command can open it, and it disappears with Haft.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use haft_tool::Text;
use rustix::fs::{Mode, OFlags};

/// A read returns at least one character.
const MAX_CHARACTER_BYTES: usize = 4;

/// The output of one task.
#[derive(Debug)]
pub(super) struct TaskLog {
    file: File,
    /// Size of the part that stays.
    head: u64,
    /// Size of the ring after it.
    ring: u64,
    /// Bytes of output.
    total: u64,
    /// Bytes that were written to the file, the overwritten ones included.
    written: u64,
    /// Whether the file could not be written; later output is only counted.
    has_failed: bool,
}

/// A part of the output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogPart {
    /// Bytes between the requested position and `bytes` that were overwritten.
    pub(super) skipped: u64,
    pub(super) bytes: Vec<u8>,
    /// Position of the next part.
    pub(super) next: u64,
    /// Bytes that can be read from there.
    pub(super) more: u64,
}

impl TaskLog {
    /// An empty log of at most `max_bytes`, in a file in `directory`.
    pub(super) fn new(directory: &Path, max_bytes: u64) -> io::Result<Self> {
        let file = unnamed_file(directory)?;
        let ring = (max_bytes / 2).max(1);
        Ok(Self { file, head: max_bytes.saturating_sub(ring), ring, total: 0, written: 0, has_failed: false })
    }

    /// Bytes of output.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of output that were not kept.
    pub(super) fn dropped(&self) -> u64 {
        self.total - self.written + (self.ring_start() - self.head)
    }

    /// Appends output.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        self.total += bytes.len() as u64;
        while !bytes.is_empty() && !self.has_failed {
            let (offset, room) = self.offset(self.written);
            let part = &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
            match self.file.write_at(part, offset) {
                Ok(length @ 1..) => {
                    self.written += length as u64;
                    bytes = &bytes[length..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The disk is full.
                Ok(0) | Err(_) => self.has_failed = true,
            }
        }
    }

    /// At most `max_bytes` from position `from`. With `is_running` an incomplete last character is left for later.
    pub(super) fn read(&self, from: u64, max_bytes: usize, is_running: bool) -> io::Result<LogPart> {
        let max_bytes = max_bytes.max(MAX_CHARACTER_BYTES);
        let start = self.next_kept(from);
        let mut next = start;
        let mut bytes = Vec::new();
        while bytes.len() < max_bytes && next < self.written && self.next_kept(next) == next {
            let (offset, room) = self.offset(next);
            let end = if next < self.head { self.head.min(self.written) } else { self.written };
            let length = room.min(end - next).min((max_bytes - bytes.len()) as u64);
            let at = bytes.len();
            bytes.resize(at + usize::try_from(length).unwrap_or_default(), 0);
            self.file.read_exact_at(&mut bytes[at..], offset)?;
            next += length;
        }
        let more_follows = next < self.written && self.next_kept(next) == next;
        // The bytes of an incomplete character do not count as readable.
        let at_the_end = next >= self.written;
        if more_follows || (is_running && at_the_end) {
            let cut = incomplete_bytes(&bytes);
            bytes.truncate(bytes.len() - cut);
            next -= cut as u64;
        }
        let more = if at_the_end { 0 } else { self.readable(next) };
        Ok(LogPart { skipped: start - from, bytes, next, more })
    }

    /// Bytes that can be read from position `from`.
    fn readable(&self, from: u64) -> u64 {
        let from = self.next_kept(from);
        let gap = if from < self.head { self.ring_start() - self.head } else { 0 };
        self.written.saturating_sub(from + gap)
    }

    /// The beginning and the end, at most `max_bytes`.
    pub(super) fn text(&self, max_bytes: usize) -> io::Result<Text> {
        let half = max_bytes / 2;
        let mut first = self.read(0, half, false)?;
        let end = self.written.saturating_sub(half as u64).max(first.next);
        let last = self.read(end, half, false)?;
        let missing_bytes = self.total - (first.bytes.len() + last.bytes.len()) as u64;
        if missing_bytes == 0 {
            first.bytes.extend_from_slice(&last.bytes);
            return Ok(String::from_utf8_lossy(&first.bytes).into_owned().into());
        }
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Text { head: lossy(&first.bytes), missing_bytes, tail: lossy(&last.bytes) })
    }

    /// The oldest position in the ring.
    fn ring_start(&self) -> u64 {
        self.head.max(self.written.saturating_sub(self.ring))
    }

    /// `from`, or the next position that was not overwritten, or the end.
    fn next_kept(&self, from: u64) -> u64 {
        let kept = if from < self.head { from } else { from.max(self.ring_start()) };
        if kept < self.written { kept } else { self.total.max(from) }
    }

    /// The offset of a position in the file, and how many bytes are contiguous from there.
    fn offset(&self, at: u64) -> (u64, u64) {
        if at < self.head {
            return (at, self.head - at);
        }
        let in_ring = (at - self.head) % self.ring;
        (self.head + in_ring, self.ring - in_ring)
    }
}

/// Bytes at the end that are an incomplete UTF-8 character.
fn incomplete_bytes(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let Some(back) = tail.iter().rev().position(|byte| byte & 0xc0 != 0x80) else { return 0 };
    let needs = match tail[tail.len() - 1 - back] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if needs > back + 1 { back + 1 } else { 0 }
}

/// A file without a name.
fn unnamed_file(directory: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    #[cfg(target_os = "linux")]
    if let Ok(file) = rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
        return Ok(file.into());
    }
    // Not every file system supports O_TMPFILE.
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(io::Error::other)?;
    let path = directory.join(format!(".task-{:016x}", u64::from_ne_bytes(number)));
    let file = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
    std::fs::remove_file(path)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(bytes: u64) -> TaskLog {
        TaskLog::new(&std::env::temp_dir(), bytes).unwrap()
    }

    #[test]
    fn reader_gets_every_kept_byte_and_the_count_of_the_others() {
        let stream: Vec<u8> = (0..=99).collect();
        for bound in [1, 2, 7, 20, 99, 100, 101] {
            for (write, read, every) in [(1, 4, 1), (3, 5, 2), (7, 4, 3), (11, 50, 9), (100, 4, 1)] {
                let mut log = log(bound);
                let (mut at, mut seen, mut missed) = (0, Vec::new(), 0);
                let mut look = |log: &TaskLog, over: bool| {
                    let LogPart { skipped, bytes, next, more } = log.read(at, read, !over).unwrap();
                    missed += skipped;
                    seen.extend(bytes);
                    at = next;
                    assert_eq!(more == 0, next >= log.total());
                    at
                };
                for (turn, part) in stream.chunks(write).enumerate() {
                    log.push(part);
                    if turn % every == 0 {
                        look(&log, false);
                    }
                }
                while look(&log, true) < log.total() {}
                let case = format!("bound {bound}, write {write}, read {read}, every {every}");
                assert_eq!(seen.len() as u64 + missed, 100, "{case}");
                assert!(seen.is_sorted(), "{case}");
                assert!(missed <= log.dropped(), "{case}");
                if bound >= 100 {
                    assert_eq!(seen, stream, "{case}");
                }
            }
        }
    }

    #[test]
    fn first_half_stays_and_the_last_bytes_follow() {
        let mut log = log(8);
        (0..100_u8).for_each(|byte| log.push(&[byte]));
        assert_eq!((log.total(), log.dropped()), (100, 92));
        assert_eq!(log.readable(0), 8);
        let first = log.read(0, 100, false).unwrap();
        assert_eq!(first, LogPart { skipped: 0, bytes: vec![0, 1, 2, 3], next: 4, more: 4 });
        let last = log.read(first.next, 100, false).unwrap();
        assert_eq!(last, LogPart { skipped: 92, bytes: vec![96, 97, 98, 99], next: 100, more: 0 });
        let text = log.text(8).unwrap();
        assert_eq!(text.head, "\0\u{1}\u{2}\u{3}");
        assert_eq!((text.missing_bytes, text.tail.as_str()), (92, "`abc"));
    }

    #[test]
    fn characters_are_not_split() {
        let mut log = log(100);
        log.push("aä€".as_bytes());
        log.push(&"😀".as_bytes()[..3]);
        assert_eq!(log.read(0, 5, true).unwrap().bytes, "aä".as_bytes());
        assert_eq!(log.read(3, 100, true).unwrap().bytes, "€".as_bytes());
        assert_eq!(log.read(6, 100, true).unwrap(), LogPart { skipped: 0, bytes: vec![], next: 6, more: 0 });
        assert_eq!(log.read(6, 100, false).unwrap().bytes, "😀".as_bytes()[..3], "the task has ended");
        log.push(&"😀".as_bytes()[3..]);
        assert_eq!(log.read(6, 100, true).unwrap().bytes, "😀".as_bytes());
        assert_eq!(incomplete_bytes(b"\x80\x80\x80\x80"), 0, "not UTF-8");
    }
}
