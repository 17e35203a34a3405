//! Slips: that a call begins, and calls that changed nothing, written down in one step at the end of a file, and entered into the database by whoever
//! next looks or writes there.
//!
//! A slip survives the death of its process like an entry does, and costs a tenth of one. The file also gives out the
//! numbers of calls, to all processes, so that a slip has its number at once and all stand in the order they came.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use haft_tool::{Receipt, ToolError, lock};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::header::{HEADER, Header};
use crate::home::{SLIPS, private_file};

/// A file longer than this is entered even if nobody looks, once it is quiet.
const FULL: u64 = 16 << 20;
/// One longer than this is entered even if it is not.
const TOO_FULL: u64 = 64 << 20;
/// It is quiet if hardly any calls were made for so long.
const QUIET: Duration = Duration::from_millis(200);
const HARDLY_ANY: u64 = 20;
/// A file longer than this is begun anew once all of it is entered.
const LONG: u64 = 256 << 10;
/// No slip is longer.
const MOST_BYTES: usize = 16 << 20;
/// After so many bytes a process looks how long the file is.
const LOOK: u64 = 1 << 20;
/// How much is entered at once, so that a long file takes little memory.
const PART: u64 = 256 << 10;
/// How much is kept in memory to be written together.
const MOST_KEPT: usize = 64 << 10;

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
    header: Header,
    /// Slips that nobody has been told of yet.
    kept: Mutex<Vec<u8>>,
    /// For one thread at a time: threads have the lock on a file in common.
    file: Mutex<Appended>,
}

#[derive(Debug)]
struct Appended {
    file: File,
    /// What was written last, emptied: room for what is kept next.
    room: Vec<u8>,
    /// How much this process has written since it last looked how long the file is.
    unlooked: u64,
}

/// The file, held against whoever would begin it anew, or against everybody.
struct Held<'a> {
    open: MutexGuard<'a, Appended>,
}

impl Slips {
    /// The file of a home; nothing if there is none that can be used as it is.
    pub(crate) fn open(dir: &Path) -> Option<Self> {
        let file = OpenOptions::new().read(true).append(true).open(dir.join(SLIPS)).ok()?;
        let whole = |meta: &Metadata| meta.is_file() && meta.mode() & 0o777 == 0o600 && meta.len() >= HEADER;
        let header = file.metadata().is_ok_and(|meta| whole(&meta)).then(|| Header::of(&file).ok())??;
        let file = Mutex::new(Appended { file, room: Vec::new(), unlooked: LOOK });
        Some(Self { header, kept: Mutex::default(), file })
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
        // Under another name first, so that nobody finds half a header.
        let new = dir.join(format!("{SLIPS}.new"));
        let file =
            private_file(&new, OpenOptions::new().write(true).create(true).truncate(true)).map_err(told)?;
        file.write_all_at(&Header::first(last()?), 0).map_err(told)?;
        std::fs::rename(&new, &path).map_err(told)?;
        Self::open(dir).ok_or_else(|| ToolError::failed(format!("{} cannot be used", path.display())))
    }

    /// The next number.
    pub(crate) fn number(&self) -> Result<i64, ToolError> {
        self.header
            .next()
            .ok_or_else(|| ToolError::failed("the ledger's slips are damaged: no number is left"))
    }

    /// Writes a slip, at once or `later` with others, gives its receipt the next number if it has none, and says whether
    /// the file has become long.
    pub(crate) fn append(
        &self,
        session: Option<&Opening>,
        owner: Option<&str>,
        receipt: &mut Receipt,
        later: bool,
    ) -> Result<bool, ToolError> {
        let number = receipt.id;
        if number == 0 {
            receipt.id = self.number()?;
        }
        let written = written(&Borrowed { session, owner, receipt }).map_err(|error| told(&error));
        let appended = written.and_then(|slip| {
            if later {
                let mut kept = lock(&self.kept);
                if kept.len() + slip.len() <= MOST_KEPT {
                    kept.extend_from_slice(&slip);
                    return Ok(false);
                }
            }
            self.write_kept(&slip)
        });
        appended.inspect_err(|_| receipt.id = number)
    }

    /// Writes what was kept, and says whether the file has become long.
    pub(crate) fn settle(&self) -> Result<bool, ToolError> {
        // Also when nothing is left: whoever has just taken it has to be through with it.
        let held = lock(&self.file);
        if lock(&self.kept).is_empty() {
            return Ok(false);
        }
        drop(held);
        self.write_kept(&[])
    }

    /// Writes what is kept, and one more behind it. If that fails, what was kept is tried again by whoever wants to tell of
    /// it.
    fn write_kept(&self, slip: &[u8]) -> Result<bool, ToolError> {
        let mut held = self.held(FlockOperation::LockShared)?;
        let mut all = std::mem::take(&mut held.open.room);
        {
            let mut kept = lock(&self.kept);
            kept.extend_from_slice(slip);
            std::mem::swap(&mut *kept, &mut all);
        }
        let written = held.append(&all);
        if written.is_err() {
            all.truncate(all.len() - slip.len());
            lock(&self.kept).splice(..0, all);
        } else {
            all.clear();
            all.shrink_to(MOST_KEPT);
            held.open.room = all;
        }
        written.map_err(|error| told(&error))
    }

    /// Waits until calls do not come one after the other any more, or there is no room to wait for that.
    pub(crate) fn wait_until_quiet(&self) {
        let (_open, never) = std::sync::mpsc::channel::<()>();
        let mut before = self.header.last();
        while self.end().offset < TOO_FULL {
            let _ = never.recv_timeout(QUIET);
            let last = self.header.last();
            if last.saturating_sub(before) < HARDLY_ANY {
                return;
            }
            before = last;
        }
    }

    /// How far the file reaches now.
    pub(crate) fn end(&self) -> Mark {
        // What cannot be written is not there.
        let _ = self.settle();
        let open = lock(&self.file);
        Mark { age: self.header.age(), offset: open.file.metadata().map_or(0, |meta| meta.len()) }
    }

    /// Some of what is behind `mark`, the mark behind that, and whether there is more.
    pub(crate) fn behind(&self, mark: Mark) -> Result<(Vec<Slip>, Mark, bool), ToolError> {
        let mut part = PART;
        loop {
            // Held only while it is read: others have something to write.
            let held = self.held(FlockOperation::LockShared)?;
            let age = self.header.age();
            let from = if mark.age == age { mark.offset.max(HEADER) } else { HEADER };
            let end = held.end().map_err(|error| told(&error))?;
            let whole = end.saturating_sub(from) <= part;
            let mut bytes = vec![0; usize::try_from(end.saturating_sub(from).min(part)).unwrap_or(0)];
            held.open.file.read_exact_at(&mut bytes, from).map_err(|error| told(&error))?;
            drop(held);
            let (slips, used) = all(&bytes);
            let mark = Mark { age, offset: from + used };
            if whole || !slips.is_empty() {
                // What is left of a whole file is torn, or the beginning of what is being written just now.
                return Ok((slips, mark, !whole));
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
        let held = self.held(FlockOperation::LockExclusive)?;
        if self.header.age() == mark.age && held.end().map_err(|error| told(&error))? == mark.offset {
            // If this is as far as it gets, the same slips are met again, and known by their numbers.
            self.header.grow_older();
            held.open.file.set_len(HEADER).map_err(|error| told(&error))?;
        }
        Ok(())
    }

    fn held(&self, how: FlockOperation) -> Result<Held<'_>, ToolError> {
        let open = lock(&self.file);
        while let Err(error) = rustix::fs::flock(&open.file, how) {
            if error != Errno::INTR {
                return Err(told(&error.into()));
            }
        }
        Ok(Held { open })
    }
}

impl Drop for Slips {
    fn drop(&mut self) {
        // Nobody is left who could be told.
        let _ = self.settle();
    }
}

impl Held<'_> {
    fn end(&self) -> io::Result<u64> {
        self.open.file.metadata().map(|meta| meta.len())
    }

    /// Writes slips behind all others, in one step, which no other writer comes between.
    fn append(&mut self, slips: &[u8]) -> io::Result<bool> {
        let Appended { file, unlooked, .. } = &mut *self.open;
        // What remains of one that does not fit is passed over by whoever reads, and one that comes again is known by its
        // number.
        let went = file.write(slips)?;
        if went < slips.len() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        *unlooked += went as u64;
        if *unlooked < LOOK {
            return Ok(false);
        }
        *unlooked = 0;
        Ok(file.metadata()?.len() > FULL)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // The lock ends with the process at the latest.
        let _ = rustix::fs::flock(&self.open.file, FlockOperation::Unlock);
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

/// A slip as bytes, with its length and its sum before it.
fn written(slip: &Borrowed<'_>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1 << 10);
    bytes.extend_from_slice(&[0; 8]);
    serde_json::to_writer(&mut bytes, slip)?;
    let body = bytes.len() - 8;
    if body > MOST_BYTES {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    let sum = sum(&bytes[8..]);
    bytes[..4].copy_from_slice(&u32::try_from(body).unwrap_or(u32::MAX).to_le_bytes());
    bytes[4..8].copy_from_slice(&sum);
    Ok(bytes)
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

/// The slips in these bytes, and where the last of them ends. What is no slip between two of them is passed over.
fn all(bytes: &[u8]) -> (Vec<Slip>, u64) {
    let (mut slips, mut rest, mut used) = (Vec::new(), bytes, 0);
    while !rest.is_empty() {
        match first(rest) {
            Some((slip, next)) => {
                slips.push(slip);
                rest = next;
                used = bytes.len() - rest.len();
            }
            // A slip may begin anywhere behind what somebody could not finish; hardly any place looks like it.
            None => rest = &rest[1..],
        }
    }
    (slips, used as u64)
}

fn sum(bytes: &[u8]) -> [u8; 4] {
    let mut sum = [0; 4];
    sum.copy_from_slice(&blake3::hash(bytes).as_bytes()[..4]);
    sum
}

fn told(error: &io::Error) -> ToolError {
    ToolError::io("the ledger's slips", error)
}
