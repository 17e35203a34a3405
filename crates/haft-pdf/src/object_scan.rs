//! Searches a file whose tables are missing or wrong for its objects.

use memchr::memmem;

use crate::PdfError;
use crate::file::PdfFile;
use crate::lexer::{Lexer, is_space};
use crate::object::{Dict, Object, ObjectId};
use crate::xref::{MAX_OBJECTS, ObjectLocation, XrefTable};

const MAX_OBJECT_STREAMS: usize = 10_000;

/// Finds every `N G obj`, the last of each number, and the best trailer. Also returns the object streams, the newest
/// first; their objects are not in the table.
pub(crate) fn scan(file: &PdfFile<'_>) -> Result<(XrefTable, Vec<ObjectId>), PdfError> {
    let bytes = file.bytes;
    file.budget.spend_searched(bytes.len())?;
    let mut xref = XrefTable::default();
    let mut starts = Vec::new();
    for keyword in memmem::find_iter(bytes, b"obj") {
        let Some((start, id)) = object_header(bytes, keyword) else { continue };
        file.budget.spend(1)?;
        if xref.locations.len() >= MAX_OBJECTS {
            break;
        }
        xref.locations.insert(id, ObjectLocation::Offset(start));
        starts.push((start, id));
    }
    for keyword in memmem::find_iter(bytes, b"trailer") {
        let mut lexer = Lexer::for_file(bytes, keyword + b"trailer".len());
        let dict = lexer.value().and_then(|value| value.dict());
        file.budget.spend_parsed(lexer.position - keyword)?;
        if let Some(dict) = dict {
            merge_trailer(&mut xref.trailer, &dict);
        }
    }
    let mut object_streams = Vec::new();
    for object_type in ["XRef", "ObjStm", "Catalog"] {
        for name in memmem::find_iter(bytes, &[b"/", object_type.as_bytes()].concat()) {
            // The object that contains the name is the last that starts before it.
            let next = starts.partition_point(|(start, _)| *start <= name);
            let Some((start, id)) = next.checked_sub(1).map(|last| starts[last]) else { continue };
            let Some((_, object, _)) = file.object_at(start)? else { continue };
            let Some(dict) = object.dict().filter(|dict| dict.has_name("Type", object_type)) else {
                continue;
            };
            match object_type {
                "XRef" => merge_trailer(&mut xref.trailer, &dict),
                "ObjStm" if object_streams.len() < MAX_OBJECT_STREAMS => object_streams.push(id),
                "Catalog" if !xref.trailer.contains("Root") => {
                    xref.trailer.0.insert("Root".into(), Object::Reference(id));
                }
                _ => {}
            }
        }
    }
    object_streams.reverse();
    object_streams.dedup();
    Ok((xref, object_streams))
}

fn merge_trailer(trailer: &mut Dict, found: &Dict) {
    for key in ["Root", "Encrypt", "ID"] {
        if found.contains(key) {
            trailer.0.insert(key.into(), found.get(key));
        }
    }
}

/// Returns the start of the object header whose keyword `obj` is at `keyword`, and the object number.
fn object_header(bytes: &[u8], keyword: usize) -> Option<(usize, ObjectId)> {
    let skip_back = |mut at: usize, class: fn(u8) -> bool| {
        while at > 0 && class(bytes[at - 1]) {
            at -= 1;
        }
        at
    };
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let generation_end = skip_back(keyword, is_space);
    let generation = skip_back(generation_end, is_digit);
    let id_end = skip_back(generation, is_space);
    let id = skip_back(id_end, is_digit);
    if generation_end == keyword || generation == generation_end || id_end == generation || id == id_end {
        return None;
    }
    let number = std::str::from_utf8(&bytes[id..id_end]).ok()?.parse().ok()?;
    Some((id, number))
}
