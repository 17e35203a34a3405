//! Fonts: what the codes of a string say, and how far each moves the pen.

use std::rc::Rc;

use crate::Fault;
use crate::cmap::CMap;
use crate::codes::Codes;
use crate::encoding::{Encoding, usual_width};
use crate::file::File;
use crate::glyphs::named;
use crate::object::{Dict, Object};
use crate::program;

/// How many widths a font may list one by one.
const MOST_WIDTHS: usize = 100_000;

/// What filling the tables of a font costs.
const LOAD_STEPS: u64 = 400;

/// A font, ready to read strings.
#[derive(Debug)]
pub(crate) struct Font {
    kind: Kind,
    unicode: Option<CMap>,
    /// Whether lines run down the page.
    pub(crate) vertical: bool,
}

#[derive(Debug)]
enum Kind {
    Simple(Box<Simple>),
    Composite { codes: Codes, widths: Widths, glyphs: Vec<(u32, char)> },
}

#[derive(Debug)]
struct Simple {
    texts: [Option<Rc<str>>; 256],
    widths: [f64; 256],
}

/// The widths of numbered glyphs, in ems.
#[derive(Debug)]
struct Widths {
    usual: f64,
    /// First and last glyph, and the width of both and all between. Sorted by the first.
    ranges: Vec<(u32, u32, f64)>,
}

/// One code of a string.
pub(crate) struct Shown {
    /// What it says; `None` if the font does not tell.
    pub(crate) text: Option<Rc<str>>,
    /// How far it moves the pen, in ems.
    pub(crate) width: f64,
    /// Whether it is the one-byte space, which may be stretched.
    pub(crate) space: bool,
}

impl Font {
    pub(crate) fn load(file: &File<'_>, dict: &Dict) -> Result<Self, Fault> {
        file.budget.steps(LOAD_STEPS)?;
        let unicode = match file.get(dict, "ToUnicode")? {
            Object::Stream(stream) => Some(CMap::parse(&file.decode(&stream)?, &file.budget)?),
            _ => None,
        };
        if dict.is("Subtype", "Type0") {
            return Self::composite(file, dict, unicode);
        }
        let kind = Kind::Simple(Box::new(simple(file, dict)?));
        Ok(Self { kind, unicode, vertical: false })
    }

    fn composite(file: &File<'_>, dict: &Dict, unicode: Option<CMap>) -> Result<Self, Fault> {
        let below = file.get(dict, "DescendantFonts")?;
        let below = match below.array().first() {
            Some(below) => file.resolve(below)?.dict().unwrap_or_default(),
            None => below.dict().unwrap_or_default(),
        };
        let (codes, vertical) = match file.get(dict, "Encoding")? {
            Object::Stream(stream) => {
                let map = CMap::parse(&file.decode(&stream)?, &file.budget)?;
                let vertical = map.vertical;
                (Codes::Map(Box::new(map)), vertical)
            }
            Object::Name(name) => (Codes::named(&name), name.ends_with("-V") || &*name == "V"),
            _ => (Codes::Pairs, false),
        };
        // Where nothing else says what a glyph is, the font itself may.
        let mut glyphs = Vec::new();
        if unicode.is_none() && matches!(codes, Codes::Pairs) {
            let descriptor = file.get(&below, "FontDescriptor")?.dict().unwrap_or_default();
            if let Object::Stream(stream) = file.get(&descriptor, "FontFile2")? {
                glyphs = program::truetype(&file.decode(&stream)?, &file.budget)?;
            }
        }
        let kind = Kind::Composite { codes, widths: widths(file, &below)?, glyphs };
        Ok(Self { kind, unicode, vertical })
    }

    /// The codes of a string, one after the other.
    pub(crate) fn read(
        &self,
        bytes: &[u8],
        mut each: impl FnMut(Shown) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let told =
            |code: u32| self.unicode.as_ref().and_then(|map| map.lookup(code)).filter(|text| readable(text));
        match &self.kind {
            Kind::Simple(simple) => {
                for byte in bytes {
                    let at = usize::from(*byte);
                    let text = told(u32::from(*byte)).map(Rc::from).or_else(|| simple.texts[at].clone());
                    each(Shown { text, width: simple.widths[at], space: *byte == b' ' })?;
                }
            }
            Kind::Composite { codes, widths, glyphs } => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    let next = codes.next(rest);
                    let length = next.length.clamp(1, rest.len());
                    let own = || {
                        let at = glyphs.binary_search_by_key(&next.cid, |glyph| glyph.0).ok()?;
                        Some(glyphs[at].1.to_string())
                    };
                    let text = told(next.code).or_else(|| next.text.clone()).or_else(own).map(Rc::from);
                    let space = length == 1 && rest[0] == b' ';
                    each(Shown { text, width: widths.of(next.cid), space })?;
                    rest = &rest[length..];
                }
            }
        }
        Ok(())
    }
}

/// Whether a text means something outside the font that it came from.
fn readable(text: &str) -> bool {
    !text.chars().all(|char| matches!(char, '\u{e000}'..='\u{f8ff}' | '\u{fffd}') || char.is_control())
}

fn simple(file: &File<'_>, dict: &Dict) -> Result<Simple, Fault> {
    let name = file.get(dict, "BaseFont")?;
    let name = name.name().unwrap_or_default();
    let descriptor = file.get(dict, "FontDescriptor")?.dict().unwrap_or_default();
    let encoding = file.get(dict, "Encoding")?;
    let base = match &encoding {
        Object::Name(name) => Encoding::named(name),
        Object::Dict(dict) => file.get(dict, "BaseEncoding")?.name().and_then(Encoding::named),
        _ => None,
    };
    let mut texts: [Option<Rc<str>>; 256] = std::array::from_fn(|_| None);
    if base.is_none()
        && let Object::Stream(stream) = file.get(&descriptor, "FontFile")?
    {
        for (code, name) in program::type1(&file.decode(&stream)?, &file.budget)? {
            texts[usize::from(code)] = named(&name).map(Rc::from);
        }
    }
    if texts.iter().all(Option::is_none) {
        let usual = if dict.is("Subtype", "Type1") { Encoding::Standard } else { Encoding::WinAnsi };
        let symbol = name.ends_with("Symbol") || name.ends_with("SymbolMT");
        let base = base.unwrap_or(if symbol { Encoding::Symbol } else { usual });
        for (code, text) in (0..=255).zip(&mut texts) {
            *text = base.char(code).map(|char| char.to_string().into());
        }
    }
    if let Some(dict) = encoding.dict() {
        let mut code = 0;
        for item in file.get(&dict, "Differences")?.array().iter().take(1_024) {
            match file.resolve(item)? {
                Object::Number(number) => code = number as usize,
                Object::Name(name) => {
                    if let Some(text) = texts.get_mut(code) {
                        *text = named(&name).map(Rc::from);
                    }
                    code += 1;
                }
                _ => {}
            }
        }
    }
    Ok(Simple { texts, widths: simple_widths(file, dict, &descriptor, name)? })
}

fn simple_widths(file: &File<'_>, dict: &Dict, descriptor: &Dict, name: &str) -> Result<[f64; 256], Fault> {
    let listed = file.get(dict, "Widths")?;
    if listed.array().is_empty() {
        return Ok(std::array::from_fn(|code| usual_width(name, code as u8)));
    }
    // The glyphs of a Type 3 font are drawn in a space of their own.
    let scale = if dict.is("Subtype", "Type3") {
        let matrix = file.get(dict, "FontMatrix")?;
        matrix.array().first().and_then(Object::number).unwrap_or(0.001).abs()
    } else {
        0.001
    };
    let missing = file.get(descriptor, "MissingWidth")?.number().unwrap_or(0.0);
    let first = file.get(dict, "FirstChar")?.count().unwrap_or(0);
    let mut widths = [missing * scale; 256];
    for (code, width) in (first..256).zip(listed.array()) {
        widths[code] = file.resolve(width)?.number().unwrap_or(missing) * scale;
    }
    Ok(widths)
}

fn widths(file: &File<'_>, dict: &Dict) -> Result<Widths, Fault> {
    let usual = file.get(dict, "DW")?.number().unwrap_or(1_000.0) / 1_000.0;
    let mut ranges = Vec::new();
    let listed = file.get(dict, "W")?;
    let mut items = listed.array().iter();
    while let (Some(first), Some(second)) = (items.next(), items.next()) {
        file.budget.steps(1)?;
        let Some(first) = file.resolve(first)?.count() else { break };
        match file.resolve(second)? {
            Object::Array(each) => {
                for (glyph, width) in (first..).zip(each.iter()) {
                    file.budget.steps(1)?;
                    let width = file.resolve(width)?.number().unwrap_or(0.0);
                    ranges.push((glyph as u32, glyph as u32, width / 1_000.0));
                }
            }
            second => {
                let (Some(last), Some(width)) = (second.count(), items.next()) else { break };
                let width = file.resolve(width)?.number().unwrap_or(0.0);
                ranges.push((first as u32, last as u32, width / 1_000.0));
            }
        }
        if ranges.len() > MOST_WIDTHS {
            break;
        }
    }
    ranges.sort_by_key(|range| range.0);
    Ok(Widths { usual, ranges })
}

impl Widths {
    fn of(&self, glyph: u32) -> f64 {
        let end = self.ranges.partition_point(|range| range.0 <= glyph);
        let range = end.checked_sub(1).map(|at| self.ranges[at]);
        range.filter(|range| glyph <= range.1).map_or(self.usual, |range| range.2)
    }
}
