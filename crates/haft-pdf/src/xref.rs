//! The tables of object offsets: as text in older files, as streams in newer ones.

use std::collections::{HashMap, HashSet};

use crate::PdfError;
use crate::file::PdfFile;
use crate::lexer::Lexer;
use crate::object::{Dict, Object, ObjectId, PdfStream};

/// Objects beyond this number are ignored.
pub(crate) const MAX_OBJECTS: usize = 1_000_000;
/// Length of the chain of tables that refer to each other.
const MAX_TABLES: usize = 512;
/// `startxref` is searched for in this many bytes before the end of the file.
const STARTXREF_SEARCH_BYTES: usize = 4_096;
/// Bytes of one field of a table in a stream.
const MAX_FIELD_BYTES: usize = 8;

#[derive(Debug, Clone, Copy)]
pub(crate) enum ObjectLocation {
    /// Offset in the file.
    Offset(usize),
    /// Position in an object stream.
    InStream { stream: ObjectId, index: usize },
}

/// The locations of all objects, and the trailer.
#[derive(Debug, Default)]
pub(crate) struct XrefTable {
    pub(crate) locations: HashMap<ObjectId, ObjectLocation>,
    pub(crate) trailer: Dict,
}

impl XrefTable {
    /// Reads the tables from the newest to the oldest. Broken ones are skipped.
    pub(crate) fn read(file: &PdfFile<'_>) -> Result<Self, PdfError> {
        let mut xref = Self::default();
        let mut seen = HashSet::new();
        let mut pending: Vec<usize> = newest_table_offset(file.bytes).into_iter().collect();
        while let Some(offset) = pending.pop() {
            if seen.len() >= MAX_TABLES || !seen.insert(offset) {
                continue;
            }
            let Some(trailer) = xref.read_table(file, offset)? else { continue };
            pending.extend(trailer.get("Prev").unsigned());
            // The stream that belongs to a table takes precedence over older tables.
            pending.extend(trailer.get("XRefStm").unsigned());
            for (key, value) in trailer.0 {
                xref.trailer.0.entry(key).or_insert(value);
            }
        }
        Ok(xref)
    }

    /// Adds a location unless a newer table has one.
    fn add(&mut self, id: usize, location: ObjectLocation) {
        if self.locations.len() < MAX_OBJECTS
            && let Ok(id) = ObjectId::try_from(id)
        {
            self.locations.entry(id).or_insert(location);
        }
    }

    /// Reads the table at `offset` and returns its trailer.
    fn read_table(&mut self, file: &PdfFile<'_>, offset: usize) -> Result<Option<Dict>, PdfError> {
        let mut lexer = Lexer::for_file(file.bytes, offset);
        if !lexer.skip_keyword(b"xref") {
            let Some((_, Object::Stream(stream), _)) = file.object_at(offset)? else { return Ok(None) };
            return self.read_stream(file, &stream).map(Some);
        }
        while let (Some(first), Some(count)) = (lexer.integer(), lexer.integer()) {
            for id in (first..).take(count) {
                file.budget.spend(1)?;
                let (Some(offset), Some(_)) = (lexer.integer(), lexer.integer()) else { break };
                if lexer.skip_keyword(b"n") {
                    self.add(id, ObjectLocation::Offset(offset));
                } else if !lexer.skip_keyword(b"f") {
                    break;
                }
            }
        }
        let dict = if lexer.skip_keyword(b"trailer") { lexer.value() } else { None };
        file.budget.spend_parsed(lexer.position.saturating_sub(offset))?;
        Ok(dict.and_then(|dict| dict.dict()).map(|dict| Dict(dict.0.clone())))
    }

    fn read_stream(&mut self, file: &PdfFile<'_>, stream: &PdfStream) -> Result<Dict, PdfError> {
        let dict = Dict(stream.dict.0.clone());
        let widths = dict.get("W");
        let widths: Vec<usize> =
            widths.array().iter().map(|width| width.unsigned().unwrap_or(0).min(MAX_FIELD_BYTES)).collect();
        let [kind_width, second_width, third_width] = widths[..] else { return Ok(dict) };
        let record_width = kind_width + second_width + third_width;
        if record_width == 0 {
            return Ok(dict);
        }
        let bytes = file.decode(stream)?;
        let mut records = bytes.chunks_exact(record_width);
        let all = [Object::Number(0.0), dict.get("Size")];
        let index = dict.get("Index");
        let sections = if index.array().is_empty() { &all } else { index.array() };
        for section in sections.chunks_exact(2) {
            let (Some(first), Some(count)) = (section[0].unsigned(), section[1].unsigned()) else { break };
            for (id, record) in (first..).zip(records.by_ref().take(count)) {
                file.budget.spend(1)?;
                let (kind, rest) = record.split_at(kind_width);
                let (second, third) = rest.split_at(second_width);
                match if kind.is_empty() { 1 } else { big_endian(kind) } {
                    1 => self.add(id, ObjectLocation::Offset(big_endian(second))),
                    2 => {
                        let stream = big_endian(second) as ObjectId;
                        self.add(id, ObjectLocation::InStream { stream, index: big_endian(third) });
                    }
                    _ => {}
                }
            }
        }
        Ok(dict)
    }
}

fn big_endian(bytes: &[u8]) -> usize {
    bytes.iter().fold(0_usize, |number, byte| number.wrapping_shl(8) | usize::from(*byte))
}

fn newest_table_offset(bytes: &[u8]) -> Option<usize> {
    const KEYWORD: &[u8] = b"startxref";
    let tail = bytes.len().saturating_sub(STARTXREF_SEARCH_BYTES);
    let found = memchr::memmem::rfind(&bytes[tail..], KEYWORD)?;
    Lexer::for_file(bytes, tail + found + KEYWORD.len()).integer()
}
