//! The tables that say where each object stands: the old kind in text, the new kind in streams.

use std::collections::{HashMap, HashSet};

use crate::Fault;
use crate::file::File;
use crate::lexer::Lexer;
use crate::object::{Dict, Id, Object, Stream};

/// More objects than this are not believed.
pub(crate) const MOST_OBJECTS: usize = 1_000_000;
/// How many tables may follow each other.
const MOST_TABLES: usize = 512;
/// How far from the end `startxref` is looked for.
const TAIL: usize = 4_096;

/// Where an object stands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry {
    At(usize),
    In { stream: Id, index: usize },
}

/// Where all objects stand, and what the file says about itself.
#[derive(Debug, Default)]
pub(crate) struct Xref {
    pub(crate) entries: HashMap<Id, Entry>,
    pub(crate) trailer: Dict,
    /// Streams of objects whose content is not in `entries` yet.
    pub(crate) packs: Vec<Id>,
}

impl Xref {
    /// Reads the tables from the newest to the oldest. What is broken is left out.
    pub(crate) fn read(file: &File<'_>) -> Result<Self, Fault> {
        let mut xref = Self::default();
        let mut seen = HashSet::new();
        let mut waiting: Vec<usize> = start(file.bytes).into_iter().collect();
        while let Some(at) = waiting.pop() {
            if seen.len() >= MOST_TABLES || !seen.insert(at) {
                continue;
            }
            let Some(trailer) = xref.table(file, at)? else { continue };
            waiting.extend(trailer.get("Prev").count());
            // The streams that go with a table are looked at before the table's elders.
            waiting.extend(trailer.get("XRefStm").count());
            for (key, value) in trailer.0 {
                xref.trailer.0.entry(key).or_insert(value);
            }
        }
        Ok(xref)
    }

    fn put(&mut self, id: usize, entry: Entry) {
        if self.entries.len() < MOST_OBJECTS
            && let Ok(id) = Id::try_from(id)
        {
            self.entries.entry(id).or_insert(entry);
        }
    }

    fn table(&mut self, file: &File<'_>, at: usize) -> Result<Option<Dict>, Fault> {
        let mut lexer = Lexer::file(file.bytes, at);
        if !lexer.word(b"xref") {
            let Some((_, Object::Stream(stream), _)) = file.object_at(at)? else { return Ok(None) };
            return self.stream(file, &stream).map(Some);
        }
        while let (Some(first), Some(count)) = (lexer.whole(), lexer.whole()) {
            for id in (first..).take(count) {
                file.budget.steps(1)?;
                let (Some(at), Some(_)) = (lexer.whole(), lexer.whole()) else { break };
                if lexer.word(b"n") {
                    self.put(id, Entry::At(at));
                } else if !lexer.word(b"f") {
                    break;
                }
            }
        }
        if !lexer.word(b"trailer") {
            return Ok(None);
        }
        let dict = lexer.value().and_then(|value| value.dict());
        Ok(dict.map(|dict| Dict(dict.0.clone())))
    }

    fn stream(&mut self, file: &File<'_>, stream: &Stream) -> Result<Dict, Fault> {
        let dict = Dict(stream.dict.0.clone());
        let widths: Vec<usize> =
            dict.get("W").array().iter().map(|width| width.count().unwrap_or(0).min(8)).collect();
        let [kind, one, two] = widths[..] else { return Ok(dict) };
        let width = kind + one + two;
        if width == 0 {
            return Ok(dict);
        }
        let bytes = file.decode(stream)?;
        let mut records = bytes.chunks_exact(width);
        let size = dict.get("Size");
        let whole = [Object::Number(0.0), size];
        let index = dict.get("Index");
        let index = if index.array().is_empty() { &whole } else { index.array() };
        for part in index.chunks_exact(2) {
            let (Some(first), Some(count)) = (part[0].count(), part[1].count()) else { break };
            for (id, record) in (first..).zip(records.by_ref().take(count)) {
                file.budget.steps(1)?;
                let one_at = number(&record[kind..kind + one]);
                match if kind == 0 { 1 } else { number(&record[..kind]) } {
                    1 => self.put(id, Entry::At(one_at)),
                    2 => {
                        let index = number(&record[kind + one..]);
                        self.put(id, Entry::In { stream: one_at as Id, index });
                    }
                    _ => {}
                }
            }
        }
        Ok(dict)
    }
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0_usize, |number, byte| number.wrapping_shl(8) | usize::from(*byte))
}

/// Where the newest table stands.
fn start(bytes: &[u8]) -> Option<usize> {
    let tail = bytes.len().saturating_sub(TAIL);
    let found = memchr::memmem::rfind(&bytes[tail..], b"startxref")?;
    Lexer::file(bytes, tail + found + b"startxref".len()).whole()
}
