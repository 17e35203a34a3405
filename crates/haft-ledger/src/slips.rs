//! Slips: that a call begins, and calls that changed nothing, written down in one step at the end of a file, and entered into the database by whoever
//! next looks or writes there.
//!
//! A slip survives the death of its process like an entry does, and costs a tenth of one. The file also gives out the
//! numbers of calls, to all processes, so that a slip has its number at once and all stand in the order they came.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use haft_tool::{Receipt, ToolError};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::home::{SLIPS, private_file};

const MAGIC: [u8; 8] = *b"haftslip";
/// The magic, the file's age and the number last given out.
const HEADER: u64 = 24;
/// A file longer than this is entered even if nobody looks.
const FULL: u64 = 16 << 20;
/// A file longer than this is begun anew once all of it is entered.
const LONG: u64 = 256 << 10;
/// No slip is longer.
const MOST_BYTES: usize = 16 << 20;
/// How much is entered at once, so that a long file takes little memory.
const PART: u64 = 256 << 10;

/// The session of a slip, told once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) id: String,
    pub(crate) workspace: String,
    pub(crate) dialect: String,
    pub(crate) door: String,
    pub(crate) at: u64,
    pub(crate) owner: String,
}

/// One call that begins, or that has ended and changed nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Slip {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<Opening>,
    /// Whose process it is in, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    pub(crate) receipt: Receipt,
}

/// Up to where the slips have been entered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) age: u64,
    pub(crate) offset: u64,
}

/// The file of slips.
#[derive(Debug)]
pub(crate) struct Slips {
    file: Mutex<File>,
}

/// The file, locked against every other process and thread.
struct Held<'a> {
    file: MutexGuard<'a, File>,
    age: u64,
    last: u64,
}

impl Slips {
    /// The file of a home; nothing if there is none that can be used as it is.
    pub(crate) fn open(dir: &Path) -> Option<Self> {
        let file = OpenOptions::new().read(true).write(true).open(dir.join(SLIPS)).ok()?;
        let private = file.metadata().is_ok_and(|meta| meta.is_file() && meta.mode() & 0o777 == 0o600);
        let slips = Self { file: Mutex::new(file) };
        (private && slips.held().is_ok()).then_some(slips)
    }

    /// The file of a home, begun if there is none: the next number is behind `last`. The caller holds the home's lock.
    pub(crate) fn begin(
        dir: &Path,
        last: impl FnOnce() -> Result<u64, ToolError>,
    ) -> Result<Self, ToolError> {
        if let Some(slips) = Self::open(dir) {
            return Ok(slips);
        }
        let path = dir.join(SLIPS);
        let told =
            |error: io::Error| ToolError::io(format_args!("the ledger's slips {}", path.display()), &error);
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&1_u64.to_le_bytes());
        header.extend_from_slice(&last()?.to_le_bytes());
        // Under another name first, so that nobody finds half a header.
        let new = dir.join(format!("{SLIPS}.new"));
        let file =
            private_file(&new, OpenOptions::new().write(true).create(true).truncate(true)).map_err(told)?;
        file.write_all_at(&header, 0).map_err(told)?;
        std::fs::rename(&new, &path).map_err(told)?;
        Self::open(dir).ok_or_else(|| ToolError::failed(format!("{} cannot be used", path.display())))
    }

    /// The next number.
    pub(crate) fn number(&self) -> Result<i64, ToolError> {
        let mut held = self.held()?;
        held.next().map_err(|error| told(&error))
    }

    /// Writes a slip, gives its receipt the next number if it has none, and says whether the file has become long.
    pub(crate) fn append(
        &self,
        session: Option<&Opening>,
        owner: Option<&str>,
        receipt: &mut Receipt,
    ) -> Result<bool, ToolError> {
        let mut held = self.held()?;
        let number = receipt.id;
        if number == 0 {
            receipt.id = held.next().map_err(|error| told(&error))?;
        }
        let mut slip = vec![0; 8];
        let written = serde_json::to_writer(&mut slip, &Borrowed { session, owner, receipt });
        let body = slip.len() - 8;
        let put = || {
            written.map_err(io::Error::from)?;
            if body > MOST_BYTES {
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
            let sum = sum(&slip[8..]);
            slip[..4].copy_from_slice(&u32::try_from(body).unwrap_or(u32::MAX).to_le_bytes());
            slip[4..8].copy_from_slice(&sum);
            held.append(&slip)
        };
        put().map_err(|error| {
            receipt.id = number;
            told(&error)
        })
    }

    /// How far the file reaches now.
    pub(crate) fn end(&self) -> u64 {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.metadata().map_or(0, |meta| meta.len())
    }

    /// Some of what is behind `mark`, the mark behind that, and whether there is more.
    pub(crate) fn behind(&self, mark: Mark) -> Result<(Vec<Slip>, Mark, bool), ToolError> {
        let held = self.held()?;
        let from = if mark.age == held.age { mark.offset.max(HEADER) } else { HEADER };
        let end = held.end().map_err(|error| told(&error))?;
        let mut part = PART;
        loop {
            let whole = end.saturating_sub(from) <= part;
            let mut bytes = vec![0; usize::try_from(end.saturating_sub(from).min(part)).unwrap_or(0)];
            held.file.read_exact_at(&mut bytes, from).map_err(|error| told(&error))?;
            let (slips, used) = all(&bytes);
            let at = |offset| Mark { age: held.age, offset };
            if whole {
                // What a loss of power has torn, and everything behind it, is gone.
                return Ok((slips, at(end), false));
            }
            if !slips.is_empty() {
                return Ok((slips, at(from + used), true));
            }
            // One that is longer than the part, or torn.
            part = if part > MOST_BYTES as u64 { u64::MAX } else { part * 4 };
        }
    }

    /// Begins the file anew if it is long and all of it has been entered.
    pub(crate) fn shorten(&self, mark: Mark) -> Result<(), ToolError> {
        if mark.offset < LONG {
            return Ok(());
        }
        let mut held = self.held()?;
        if held.age == mark.age && held.end().map_err(|error| told(&error))? == mark.offset {
            held.age += 1;
            // If this is as far as it gets, the same slips are met again, and known by their numbers.
            held.save().and_then(|()| held.file.set_len(HEADER)).map_err(|error| told(&error))?;
        }
        Ok(())
    }

    fn held(&self) -> Result<Held<'_>, ToolError> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        while let Err(error) = rustix::fs::flock(&*file, FlockOperation::LockExclusive) {
            if error != Errno::INTR {
                return Err(told(&error.into()));
            }
        }
        let mut header = [0; 24];
        let read = file.read_exact_at(&mut header, 0);
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&header[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let (age, last) = (word(8), word(16));
        let held = Held { file, age, last };
        read.map_err(|error| told(&error))?;
        if header[..8] == MAGIC { Ok(held) } else { Err(ToolError::failed("the ledger's slips are damaged")) }
    }
}

impl Held<'_> {
    fn next(&mut self) -> io::Result<i64> {
        self.last += 1;
        self.save()?;
        i64::try_from(self.last).map_err(io::Error::other)
    }

    fn save(&self) -> io::Result<()> {
        let mut words = [0; 16];
        words[..8].copy_from_slice(&self.age.to_le_bytes());
        words[8..].copy_from_slice(&self.last.to_le_bytes());
        self.file.write_all_at(&words, 8)
    }

    fn end(&self) -> io::Result<u64> {
        self.file.metadata().map(|meta| meta.len())
    }

    /// Writes all of it or nothing.
    fn append(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let old = self.end()?;
        self.file.write_all_at(bytes, old).inspect_err(|_| {
            // What is left of it would hide every slip behind it.
            let _ = self.file.set_len(old);
        })?;
        Ok(old + bytes.len() as u64 > FULL)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // The lock ends with the process at the latest.
        let _ = rustix::fs::flock(&*self.file, FlockOperation::Unlock);
    }
}

/// A slip as it is written.
#[derive(Serialize)]
struct Borrowed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a Opening>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    receipt: &'a Receipt,
}

/// The first slip, and what is behind it.
fn first(bytes: &[u8]) -> Option<(Slip, &[u8])> {
    let (head, rest) = bytes.split_at_checked(8)?;
    let length = usize::try_from(u32::from_le_bytes([head[0], head[1], head[2], head[3]])).ok()?;
    let (body, next) = rest.split_at_checked(length)?;
    if head[4..] != sum(body) {
        return None;
    }
    Some((serde_json::from_slice(body).ok()?, next))
}

/// The slips that these bytes begin with, and how many of the bytes they are.
fn all(bytes: &[u8]) -> (Vec<Slip>, u64) {
    let (mut slips, mut rest) = (Vec::new(), bytes);
    while let Some((slip, next)) = first(rest) {
        slips.push(slip);
        rest = next;
    }
    (slips, (bytes.len() - rest.len()) as u64)
}

fn sum(bytes: &[u8]) -> [u8; 4] {
    let mut sum = [0; 4];
    sum.copy_from_slice(&blake3::hash(bytes).as_bytes()[..4]);
    sum
}

fn told(error: &io::Error) -> ToolError {
    ToolError::io("the ledger's slips", error)
}
