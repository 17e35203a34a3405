//! Large contents in chunks, each stored once: a file that changed a little shares most of its chunks with its earlier states.
//!
//! The boundaries depend on the bytes before them (a gear hash, as in `FastCDC`), so that inserted bytes move only those nearby.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use crate::blob_files::blob_path;
use crate::blobs::BlobKey;
use crate::directory::LedgerDir;

const MIN_CHUNK_BYTES: usize = 64 << 10;
const MAX_CHUNK_BYTES: usize = 1 << 20;
/// A boundary is where these bits of the hash are zero: every 256 KiB on average.
const BOUNDARY_BITS: u64 = !0 << 46;
/// Tells the hashes of chunks from those of contents.
const CHUNK_CONTEXT: &str = "haft-ledger 1 chunk of a content";
/// A number for each byte, the same in every version of Haft.
const GEAR: [u64; 256] = gear();

const fn gear() -> [u64; 256] {
    let (mut table, mut index, mut state) = ([0; 256], 0, 0_u64);
    while index < 256 {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = state;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[index] = number ^ (number >> 31);
        index += 1;
    }
    table
}

/// A content that was split.
#[derive(Debug)]
pub(crate) struct ChunkedContent {
    pub(crate) hash: blake3::Hash,
    pub(crate) size: u64,
    /// A content of one chunk has the hash of that.
    pub(crate) chunks: ChunkList,
}

/// Hash and size of each chunk.
pub(crate) type ChunkList = Vec<(BlobKey, u64)>;
const LIST_ENTRY_BYTES: usize = 32 + 8;

/// A list as it is stored.
pub(crate) fn list_to_bytes(chunks: &ChunkList) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(chunks.len() * LIST_ENTRY_BYTES);
    for (key, size) in chunks {
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(&size.to_le_bytes());
    }
    bytes
}

/// The list that was stored so.
pub(crate) fn list_from_bytes(bytes: &[u8]) -> ChunkList {
    let chunk = |entry: &[u8; LIST_ENTRY_BYTES]| {
        let (key, size) = entry.split_at(size_of::<BlobKey>());
        let size = size.try_into().map_or(0, u64::from_le_bytes);
        (BlobKey::try_from(key).unwrap_or_default(), size)
    };
    bytes.as_chunks().0.iter().map(chunk).collect()
}

impl ChunkedContent {
    /// Whether it is a single file in the store.
    pub(crate) fn is_one_file(&self) -> bool {
        self.chunks.len() == 1
    }
}

/// Splits a content and passes each chunk to `store`.
pub(crate) fn split(
    reader: &mut dyn Read,
    store: &mut dyn FnMut(BlobKey, &[u8]) -> io::Result<()>,
) -> io::Result<ChunkedContent> {
    let (mut hasher, mut buffer, mut chunks) = (blake3::Hasher::new(), Vec::new(), Vec::new());
    loop {
        // One byte more than a chunk shows whether another one follows.
        let room = (MAX_CHUNK_BYTES + 1 - buffer.len()) as u64;
        (&mut *reader).take(room).read_to_end(&mut buffer)?;
        let length = boundary(&buffer);
        let (chunk, is_last) = (&buffer[..length], length == buffer.len());
        hasher.update(chunk);
        let is_whole = is_last && chunks.is_empty();
        let key = if is_whole { blake3::hash(chunk).into() } else { chunk_key(chunk) };
        store(key, chunk)?;
        chunks.push((key, length as u64));
        if is_last {
            return Ok(ChunkedContent { hash: hasher.finalize(), size: hasher.count(), chunks });
        }
        buffer.drain(..length);
    }
}

/// The key of a chunk, which is that of no whole content: those may be rows of the database instead of files.
fn chunk_key(chunk: &[u8]) -> BlobKey {
    blake3::Hasher::new_derive_key(CHUNK_CONTEXT).update(chunk).finalize().into()
}

/// The length of the first chunk.
fn boundary(bytes: &[u8]) -> usize {
    let bytes = &bytes[..bytes.len().min(MAX_CHUNK_BYTES)];
    let mut hash = 0_u64;
    for (at, byte) in bytes.iter().enumerate().skip(MIN_CHUNK_BYTES) {
        hash = (hash << 1).wrapping_add(GEAR[usize::from(*byte)]);
        if hash & BOUNDARY_BITS == 0 {
            return at + 1;
        }
    }
    bytes.len()
}

/// Reads a content from its chunks.
#[derive(Debug)]
pub(crate) struct ChunkReader {
    files: std::vec::IntoIter<PathBuf>,
    file: Option<File>,
}

impl ChunkReader {
    pub(crate) fn new(dir: &LedgerDir, chunks: &ChunkList) -> Self {
        let files: Vec<_> = chunks.iter().map(|(key, _)| blob_path(dir, *key)).collect();
        Self { files: files.into_iter(), file: None }
    }
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(file) = &mut self.file {
                match file.read(buffer)? {
                    0 if !buffer.is_empty() => self.file = None,
                    count => return Ok(count),
                }
            }
            match self.files.next() {
                Some(path) => self.file = Some(File::open(path)?),
                None => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        bytes
    }

    fn chunks(mut bytes: &[u8]) -> ChunkList {
        let mut joined = Vec::new();
        let whole = bytes.to_vec();
        let split = split(&mut bytes, &mut |_, chunk| {
            joined.extend_from_slice(chunk);
            Ok(())
        });
        let split = split.unwrap();
        assert!(joined == whole && split.hash == blake3::hash(&whole) && split.size == whole.len() as u64);
        assert_eq!(list_from_bytes(&list_to_bytes(&split.chunks)), split.chunks);
        split.chunks
    }

    #[test]
    fn small_change_changes_few_chunks() {
        let old = bytes(20 << 20);
        let before = chunks(&old);
        assert!((20..200).contains(&before.len()), "{}", before.len());
        let mut new = old.clone();
        new[9 << 20] ^= 1;
        new.splice(5_000_000..5_000_000, *b"inserted");
        new.extend_from_slice(b"appended");
        let changed = chunks(&new).into_iter().filter(|chunk| !before.contains(chunk)).count();
        assert!((1..=6).contains(&changed), "{changed}");
    }

    #[test]
    fn equal_bytes_are_one_chunk() {
        let zeros = chunks(&vec![0; 8 << 20]);
        assert!(zeros.len() == 8 && zeros.windows(2).all(|pair| pair[0] == pair[1]));
        for length in [0, 1, 50_000, MAX_CHUNK_BYTES] {
            let zeros = vec![0; length];
            assert_eq!(chunks(&zeros), [(blake3::hash(&zeros).into(), length as u64)]);
        }
        assert_eq!(chunks(&vec![0; MAX_CHUNK_BYTES + 1]).len(), 2);
    }
}
