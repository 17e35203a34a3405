//! Reading a spool from first to last; an incomplete end is ignored.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;

use crate::blobs::BlobKey;
use crate::directory::LedgerDir;
use crate::spool::{HEADER_BYTES, SpoolRecord, spool_path};

/// A larger length in a header means that the record is damaged.
const MAX_RECORD_BYTES: u32 = 64 << 20;
/// The size of the read buffer.
const BUFFER_BYTES: usize = 128 * 1024;

/// Reads the spool of a call.
#[derive(Debug)]
pub(crate) struct SpoolReader {
    file: BufReader<File>,
    offset: u64,
    json: Vec<u8>,
}

/// A content inside a spool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContentRange {
    offset: u64,
    length: u32,
}

/// A record as it is in the file.
pub(crate) struct RawRecord<'a> {
    /// The hash of the content; zeros if there is none.
    pub(crate) key: BlobKey,
    json: &'a [u8],
    pub(crate) content: ContentRange,
}

impl RawRecord<'_> {
    /// The record; `None` if it is damaged.
    pub(crate) fn decode(&self) -> Option<SpoolRecord<'static>> {
        serde_json::from_slice(self.json).ok()
    }
}

impl SpoolReader {
    /// Opens the spool of a call; `None` if it has none.
    pub(crate) fn open(dir: &LedgerDir, receipt: i64) -> io::Result<Option<Self>> {
        match File::open(spool_path(dir, receipt)) {
            Ok(file) => {
                let file = BufReader::with_capacity(BUFFER_BYTES, file);
                Ok(Some(Self { file, offset: 0, json: Vec::new() }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next record.
    pub(crate) fn next(&mut self) -> io::Result<Option<RawRecord<'_>>> {
        let mut header = [0; HEADER_BYTES];
        let Some(()) = unless_eof(self.file.read_exact(&mut header))? else { return Ok(None) };
        let (lengths, key) = header.split_at(8);
        let mut lengths =
            lengths.chunks(4).map(|bytes| bytes.try_into().map_or(u32::MAX, u32::from_le_bytes));
        let mut next_length = || lengths.next().unwrap_or(u32::MAX);
        let (json, content) = (next_length(), next_length());
        if json == 0 || json > MAX_RECORD_BYTES || content > MAX_RECORD_BYTES {
            return Ok(None);
        }
        self.json.resize(json as usize, 0);
        let Some(()) = unless_eof(self.file.read_exact(&mut self.json))? else { return Ok(None) };
        self.file.seek_relative(i64::from(content))?;
        let content =
            ContentRange { offset: self.offset + HEADER_BYTES as u64 + u64::from(json), length: content };
        self.offset = content.offset + u64::from(content.length);
        Ok(Some(RawRecord { key: key.try_into().unwrap_or_default(), json: &self.json, content }))
    }

    /// Reads a content; returns whether it is complete.
    pub(crate) fn read(&self, range: ContentRange, bytes: &mut Vec<u8>) -> io::Result<bool> {
        bytes.resize(range.length as usize, 0);
        Ok(unless_eof(self.file.get_ref().read_exact_at(bytes, range.offset))?.is_some())
    }
}

/// `None` at the end of the file.
fn unless_eof(read: io::Result<()>) -> io::Result<Option<()>> {
    match read {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
