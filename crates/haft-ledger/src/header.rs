//! The head of the file of slips, which all processes have in memory: they take numbers from it without a lock.
//!
//! As with the database's own shared memory, a process dies if somebody cuts the file off under it.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapMut, MmapOptions};

const MAGIC: [u8; 8] = *b"haftslip";
/// How long it is: the magic, the file's age and the number last given out.
pub(crate) const HEADER: u64 = 24;
const AGE: usize = 8;
const LAST: usize = 16;

/// The head of a file of slips.
#[derive(Debug)]
pub(crate) struct Header(MmapMut);

impl Header {
    /// The head of a file that is begun, as bytes.
    pub(crate) fn first(last: u64) -> Vec<u8> {
        [MAGIC, 1_u64.to_ne_bytes(), last.to_ne_bytes()].concat()
    }

    /// The head of an open file, which must be long enough to have one.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "memory that processes share")]
        // SAFETY: behind the magic it is only used as atomic numbers, whatever others do with it meanwhile.
        let head = unsafe { MmapOptions::new().len(LAST + 8).map_mut(file)? };
        if head[..AGE] == MAGIC { Ok(Self(head)) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// How often the file has been begun anew.
    pub(crate) fn age(&self) -> u64 {
        self.word(AGE).load(Ordering::SeqCst)
    }

    /// Notes that the file is begun anew.
    pub(crate) fn grow_older(&self) {
        self.word(AGE).fetch_add(1, Ordering::SeqCst);
    }

    /// The next number, if there is one left.
    pub(crate) fn next(&self) -> Option<i64> {
        let last = self.word(LAST).fetch_add(1, Ordering::SeqCst);
        i64::try_from(last).ok()?.checked_add(1)
    }

    /// The number that was given out last.
    pub(crate) fn last(&self) -> u64 {
        self.word(LAST).load(Ordering::SeqCst)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        #[expect(unsafe_code, reason = "memory that processes share")]
        // SAFETY: the eight bytes lie in the mapping, which lives as long as `self`, and are aligned; all processes
        // touch them as atomic numbers only.
        unsafe {
            AtomicU64::from_ptr(self.0.as_ptr().add(at).cast_mut().cast())
        }
    }
}
