//! What a task writes, on disk and bounded: the first half of the room stays, the second half is a ring.
//!
//! The file has no name. No command can open it, and nothing is left of it whatever becomes of Haft.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use haft_tool::{Text, ToolError};
use rustix::fs::{Mode, OFlags};

/// The stream of one task.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    /// How many of the first bytes stay.
    head: u64,
    /// How many of the last bytes are kept behind them.
    ring: u64,
    /// How many bytes there were.
    total: u64,
    /// How many of them reached the file; less than all once the disk refused some.
    written: u64,
    refused: bool,
}

/// A part of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// How many bytes between the place asked for and `bytes` are not there any more.
    pub(super) skipped: u64,
    pub(super) bytes: Vec<u8>,
    /// Where the next part begins.
    pub(super) next: u64,
    /// How many bytes can be read from there.
    pub(super) more: u64,
}

impl Log {
    /// An empty log of at most `bytes` in a file in `directory`.
    pub(super) fn new(directory: &Path, bytes: u64) -> Result<Self, ToolError> {
        let file = nameless(directory).map_err(|error| {
            let place = directory.display();
            ToolError::io(format!("a task's output needs a file in {place}"), &error)
        })?;
        let ring = (bytes / 2).max(1);
        Ok(Self { file, head: bytes.saturating_sub(ring), ring, total: 0, written: 0, refused: false })
    }

    /// How many bytes there were.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// How many of them were not kept.
    pub(super) fn dropped(&self) -> u64 {
        self.total - self.written + (self.ring_start() - self.head)
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        self.total += bytes.len() as u64;
        while !bytes.is_empty() && !self.refused {
            let (offset, room) = self.place(self.written);
            let part = &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
            match self.file.write_at(part, offset) {
                Ok(length @ 1..) => {
                    self.written += length as u64;
                    bytes = &bytes[length..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The command goes on; what it says from now on is only counted.
                Ok(0) | Err(_) => self.refused = true,
            }
        }
    }

    /// At most `most` bytes from `from` on. With `whole` the last character is left for later if its end has not come.
    pub(super) fn read(&self, from: u64, most: usize, whole: bool) -> Result<Part, ToolError> {
        // One character fits at least, so that every look gets on.
        let most = most.max(4);
        let start = self.next_kept(from);
        let mut next = start;
        let mut bytes = Vec::new();
        while bytes.len() < most && next < self.written && self.next_kept(next) == next {
            let (offset, room) = self.place(next);
            let end = if next < self.head { self.head.min(self.written) } else { self.written };
            let length = room.min(end - next).min((most - bytes.len()) as u64);
            let at = bytes.len();
            bytes.resize(at + usize::try_from(length).unwrap_or_default(), 0);
            self.file
                .read_exact_at(&mut bytes[at..], offset)
                .map_err(|error| ToolError::io("a task's output cannot be read", &error))?;
            next += length;
        }
        let more_follows = next < self.written && self.next_kept(next) == next;
        // The rest of a character that has not come is nothing that could be read.
        let at_the_end = next >= self.written;
        if more_follows || (whole && at_the_end) {
            let cut = unfinished(&bytes);
            bytes.truncate(bytes.len() - cut);
            next -= cut as u64;
        }
        let more = if at_the_end { 0 } else { self.waiting(next) };
        Ok(Part { skipped: start - from, bytes, next, more })
    }

    /// How many bytes from `from` on can be read.
    fn waiting(&self, from: u64) -> u64 {
        let from = self.next_kept(from);
        let gap = if from < self.head { self.ring_start() - self.head } else { 0 };
        self.written.saturating_sub(from + gap)
    }

    /// The beginning and the end, at most `most` bytes in all.
    pub(super) fn text(&self, most: usize) -> Result<Text, ToolError> {
        let half = most / 2;
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

    /// The oldest place that the ring still has.
    fn ring_start(&self) -> u64 {
        self.head.max(self.written.saturating_sub(self.ring))
    }

    /// `from`, or the next place whose byte is still there, or the end.
    fn next_kept(&self, from: u64) -> u64 {
        let kept = if from < self.head { from } else { from.max(self.ring_start()) };
        if kept < self.written { kept } else { self.total.max(from) }
    }

    /// Where in the file a byte of the stream is, and how many may follow it there.
    fn place(&self, at: u64) -> (u64, u64) {
        if at < self.head {
            return (at, self.head - at);
        }
        let in_ring = (at - self.head) % self.ring;
        (self.head + in_ring, self.ring - in_ring)
    }
}

/// How many bytes at the end begin a character without finishing it.
fn unfinished(bytes: &[u8]) -> usize {
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

/// A private file that nobody can find.
fn nameless(directory: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    #[cfg(target_os = "linux")]
    if let Ok(file) = rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
        return Ok(file.into());
    }
    // Not every file system can do that in one step.
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
    let path = directory.join(format!(".task-{:016x}", u64::from_ne_bytes(number)));
    let file = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
    std::fs::remove_file(path)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(bytes: u64) -> Log {
        Log::new(&std::env::temp_dir(), bytes).unwrap()
    }

    #[test]
    fn a_reader_at_any_pace_gets_every_byte_that_was_kept_and_the_number_of_the_others() {
        let stream: Vec<u8> = (0..=99).collect();
        for bound in [1, 2, 7, 20, 99, 100, 101] {
            for (write, read, every) in [(1, 4, 1), (3, 5, 2), (7, 4, 3), (11, 50, 9), (100, 4, 1)] {
                let mut log = log(bound);
                let (mut at, mut seen, mut missed) = (0, Vec::new(), 0);
                let mut look = |log: &Log, over: bool| {
                    let Part { skipped, bytes, next, more } = log.read(at, read, !over).unwrap();
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
                let told = format!("bound {bound}, write {write}, read {read}, every {every}");
                assert_eq!(seen.len() as u64 + missed, 100, "{told}");
                assert!(seen.is_sorted(), "{told}");
                assert!(missed <= log.dropped(), "{told}");
                if bound >= 100 {
                    assert_eq!(seen, stream, "{told}");
                }
            }
        }
    }

    #[test]
    fn the_first_half_stays_and_the_last_part_follows() {
        let mut log = log(8);
        (0..100_u8).for_each(|byte| log.push(&[byte]));
        assert_eq!((log.total(), log.dropped()), (100, 92));
        assert_eq!(log.waiting(0), 8);
        let first = log.read(0, 100, false).unwrap();
        assert_eq!(first, Part { skipped: 0, bytes: vec![0, 1, 2, 3], next: 4, more: 4 });
        let last = log.read(first.next, 100, false).unwrap();
        assert_eq!(last, Part { skipped: 92, bytes: vec![96, 97, 98, 99], next: 100, more: 0 });
        let text = log.text(8).unwrap();
        assert_eq!(text.head, "\0\u{1}\u{2}\u{3}");
        assert_eq!((text.missing_bytes, text.tail.as_str()), (92, "`abc"));
    }

    #[test]
    fn a_character_is_given_whole_or_not_yet() {
        let mut log = log(100);
        log.push("aä€".as_bytes());
        log.push(&"😀".as_bytes()[..3]);
        assert_eq!(log.read(0, 5, true).unwrap().bytes, "aä".as_bytes());
        assert_eq!(log.read(3, 100, true).unwrap().bytes, "€".as_bytes());
        assert_eq!(log.read(6, 100, true).unwrap(), Part { skipped: 0, bytes: vec![], next: 6, more: 0 });
        assert_eq!(log.read(6, 100, false).unwrap().bytes, "😀".as_bytes()[..3], "nothing more will come");
        log.push(&"😀".as_bytes()[3..]);
        assert_eq!(log.read(6, 100, true).unwrap().bytes, "😀".as_bytes());
        assert_eq!(unfinished(b"\x80\x80\x80\x80"), 0, "what is no text is given as it is");
    }
}
