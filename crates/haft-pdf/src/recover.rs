//! Finding the objects of a file whose tables are missing or wrong.

use memchr::memmem;

use crate::Fault;
use crate::file::File;
use crate::lexer::{Lexer, is_space};
use crate::object::{Dict, Id, Object};
use crate::xref::{Entry, MOST_OBJECTS, Xref};

/// How many streams of objects are looked into.
const MOST_PACKS: usize = 10_000;

/// Every `N G obj` in the file, the last of each number, and the best trailer.
pub(crate) fn recover(file: &File<'_>) -> Result<Xref, Fault> {
    let bytes = file.bytes;
    file.budget.steps(bytes.len() as u64 / 64)?;
    let mut xref = Xref::default();
    let mut starts = Vec::new();
    for found in memmem::find_iter(bytes, b"obj") {
        let Some((at, id)) = header(bytes, found) else { continue };
        file.budget.steps(1)?;
        if xref.entries.len() >= MOST_OBJECTS {
            break;
        }
        xref.entries.insert(id, Entry::At(at));
        starts.push((at, id));
    }
    for found in memmem::find_iter(bytes, b"trailer") {
        let mut lexer = Lexer::file(bytes, found + b"trailer".len());
        let dict = lexer.value().and_then(|value| value.dict());
        file.budget.steps(1 + (lexer.at - found) as u64 / 8)?;
        if let Some(dict) = dict {
            adopt(&mut xref.trailer, &dict);
        }
    }
    for (mark, kind) in [(&b"/XRef"[..], "XRef"), (b"/ObjStm", "ObjStm"), (b"/Catalog", "Catalog")] {
        for found in memmem::find_iter(bytes, mark) {
            // The object that the mark stands in starts at or before it.
            let next = starts.partition_point(|(at, _)| *at <= found);
            let Some((at, id)) = next.checked_sub(1).map(|last| starts[last]) else { continue };
            let Some((_, object, _)) = file.object_at(at)? else { continue };
            let Some(dict) = object.dict().filter(|dict| dict.is("Type", kind)) else { continue };
            match kind {
                "XRef" => adopt(&mut xref.trailer, &dict),
                "ObjStm" if xref.packs.len() < MOST_PACKS => xref.packs.push(id),
                "Catalog" if !xref.trailer.has("Root") => {
                    xref.trailer.0.insert("Root".into(), Object::Ref(id));
                }
                _ => {}
            }
        }
    }
    // The newest stream of objects comes first, as its objects count.
    xref.packs.reverse();
    xref.packs.dedup();
    Ok(xref)
}

fn adopt(trailer: &mut Dict, found: &Dict) {
    for key in ["Root", "Encrypt", "ID"] {
        if found.has(key) {
            trailer.0.insert(key.into(), found.get(key));
        }
    }
}

/// Where the object of the `obj` at `found` starts, and its number.
fn header(bytes: &[u8], found: usize) -> Option<(usize, Id)> {
    let back = |mut at: usize, class: fn(u8) -> bool| {
        while at > 0 && class(bytes[at - 1]) {
            at -= 1;
        }
        at
    };
    let digit = |byte: u8| byte.is_ascii_digit();
    let generation_end = back(found, is_space);
    let generation = back(generation_end, digit);
    let id_end = back(generation, is_space);
    let id = back(id_end, digit);
    if generation_end == found || generation == generation_end || id_end == generation || id == id_end {
        return None;
    }
    let number = std::str::from_utf8(&bytes[id..id_end]).ok()?.parse().ok()?;
    Some((id, number))
}
