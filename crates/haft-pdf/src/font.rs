//! Fonts: the characters and widths of the codes in a string.

use std::rc::Rc;

use crate::PdfError;
use crate::char_codes::CompositeEncoding;
use crate::cmap::CMap;
use crate::encoding::{SimpleEncoding, default_width};
use crate::file::PdfFile;
use crate::font_program;
use crate::glyph_names::glyph_text;
use crate::object::{Dict, Object};

/// Ranges of glyphs with a width each.
const MAX_WIDTH_RANGES: usize = 100_000;
const MAX_ENCODING_DIFFERENCES: usize = 1_024;
/// What loading a font costs beside its tables.
const LOAD_STEPS: u64 = 400;
/// Widths are given in thousandths of an em.
const EM_SIZE: f64 = 1_000.0;

#[derive(Debug)]
pub(crate) struct Font {
    kind: FontKind,
    to_unicode: Option<CMap>,
    /// Whether text runs down the page.
    pub(crate) vertical: bool,
}

#[derive(Debug)]
enum FontKind {
    Simple(Box<SimpleFont>),
    Composite {
        encoding: CompositeEncoding,
        widths: GlyphWidths,
        /// The characters of glyphs, sorted by glyph; empty if the encoding defines them.
        glyphs: Vec<(u32, char)>,
    },
}

/// A font with one-byte codes.
#[derive(Debug)]
struct SimpleFont {
    texts: [Option<Rc<str>>; 256],
    /// In ems.
    widths: [f64; 256],
}

/// The widths of numbered glyphs, in ems.
#[derive(Debug)]
struct GlyphWidths {
    default: f64,
    /// First glyph, last glyph and their width, sorted by the first.
    ranges: Vec<(u32, u32, f64)>,
}

/// One code of a string, as a font shows it.
pub(crate) struct FontGlyph {
    /// The characters; `None` if the font does not define them.
    pub(crate) text: Option<Rc<str>>,
    /// In ems.
    pub(crate) width: f64,
    /// Whether it is the one-byte space, to which word spacing applies.
    pub(crate) is_space: bool,
}

impl Font {
    pub(crate) fn load(file: &PdfFile<'_>, dict: &Dict) -> Result<Self, PdfError> {
        file.budget.spend(LOAD_STEPS)?;
        let to_unicode = match file.get(dict, "ToUnicode")? {
            Object::Stream(stream) => Some(CMap::parse(&file.decode(&stream)?, &file.budget)?),
            _ => None,
        };
        if dict.has_name("Subtype", "Type0") {
            return Self::load_composite(file, dict, to_unicode);
        }
        let kind = FontKind::Simple(Box::new(SimpleFont::load(file, dict)?));
        Ok(Self { kind, to_unicode, vertical: false })
    }

    fn load_composite(file: &PdfFile<'_>, dict: &Dict, to_unicode: Option<CMap>) -> Result<Self, PdfError> {
        let descendants = file.get(dict, "DescendantFonts")?;
        let descendant = match descendants.array().first() {
            Some(descendant) => file.resolve(descendant)?.dict().unwrap_or_default(),
            None => descendants.dict().unwrap_or_default(),
        };
        let (encoding, vertical) = match file.get(dict, "Encoding")? {
            Object::Stream(stream) => {
                let map = CMap::parse(&file.decode(&stream)?, &file.budget)?;
                let vertical = map.vertical;
                (CompositeEncoding::CMap(Box::new(map)), vertical)
            }
            Object::Name(name) => {
                (CompositeEncoding::from_name(&name), name.ends_with("-V") || &*name == "V")
            }
            _ => (CompositeEncoding::Identity, false),
        };
        // Without other sources, the embedded font may define the characters of its glyphs.
        let mut glyphs = Vec::new();
        if to_unicode.is_none() && matches!(encoding, CompositeEncoding::Identity) {
            let descriptor = file.get(&descendant, "FontDescriptor")?.dict().unwrap_or_default();
            if let Object::Stream(stream) = file.get(&descriptor, "FontFile2")? {
                glyphs = font_program::truetype_glyphs(&file.decode(&stream)?, &file.budget)?;
            }
        }
        let widths = GlyphWidths::load(file, &descendant)?;
        Ok(Self { kind: FontKind::Composite { encoding, widths, glyphs }, to_unicode, vertical })
    }

    /// Calls `show` for each code of a string.
    pub(crate) fn decode(
        &self,
        string: &[u8],
        mut show: impl FnMut(FontGlyph) -> Result<(), PdfError>,
    ) -> Result<(), PdfError> {
        let to_unicode = |code: u32| {
            let text = self.to_unicode.as_ref().and_then(|map| map.text(code));
            text.filter(|text| is_meaningful(text))
        };
        match &self.kind {
            FontKind::Simple(font) => {
                for byte in string {
                    let code = usize::from(*byte);
                    let text = to_unicode(u32::from(*byte)).map(Rc::from);
                    let text = text.or_else(|| font.texts[code].clone());
                    show(FontGlyph { text, width: font.widths[code], is_space: *byte == b' ' })?;
                }
            }
            FontKind::Composite { encoding, widths, glyphs } => {
                let mut rest = string;
                while !rest.is_empty() {
                    let next = encoding.next_code(rest);
                    let length = next.length.clamp(1, rest.len());
                    let from_glyphs = || {
                        let index = glyphs.binary_search_by_key(&next.cid, |glyph| glyph.0).ok()?;
                        Some(glyphs[index].1.to_string())
                    };
                    let text = to_unicode(next.code).or_else(|| next.text.clone()).or_else(from_glyphs);
                    let is_space = length == 1 && rest[0] == b' ';
                    show(FontGlyph { text: text.map(Rc::from), width: widths.get(next.cid), is_space })?;
                    rest = &rest[length..];
                }
            }
        }
        Ok(())
    }
}

/// Whether a text means something outside of the font that it comes from.
fn is_meaningful(text: &str) -> bool {
    !text.chars().all(|char| matches!(char, '\u{e000}'..='\u{f8ff}' | '\u{fffd}') || char.is_control())
}

impl SimpleFont {
    fn load(file: &PdfFile<'_>, dict: &Dict) -> Result<Self, PdfError> {
        let name = file.get(dict, "BaseFont")?;
        let name = name.name().unwrap_or_default();
        let descriptor = file.get(dict, "FontDescriptor")?.dict().unwrap_or_default();
        let encoding = file.get(dict, "Encoding")?;
        let named_encoding = match &encoding {
            Object::Name(name) => SimpleEncoding::from_name(name),
            Object::Dict(dict) => file.get(dict, "BaseEncoding")?.name().and_then(SimpleEncoding::from_name),
            _ => None,
        };
        let mut texts: [Option<Rc<str>>; 256] = std::array::from_fn(|_| None);
        if named_encoding.is_none()
            && let Object::Stream(stream) = file.get(&descriptor, "FontFile")?
        {
            for (code, name) in font_program::type1_encoding(&file.decode(&stream)?, &file.budget)? {
                texts[usize::from(code)] = glyph_text(&name).map(Rc::from);
            }
        }
        if texts.iter().all(Option::is_none) {
            let default = if name.ends_with("Symbol") || name.ends_with("SymbolMT") {
                SimpleEncoding::Symbol
            } else if dict.has_name("Subtype", "Type1") {
                SimpleEncoding::Standard
            } else {
                SimpleEncoding::WinAnsi
            };
            let encoding = named_encoding.unwrap_or(default);
            for (code, text) in (0..=u8::MAX).zip(&mut texts) {
                *text = encoding.decode(code).map(|char| char.to_string().into());
            }
        }
        if let Some(dict) = encoding.dict() {
            let mut code = 0;
            for item in file.get(&dict, "Differences")?.array().iter().take(MAX_ENCODING_DIFFERENCES) {
                match file.resolve(item)? {
                    Object::Number(number) => code = number as usize,
                    Object::Name(name) => {
                        if let Some(text) = texts.get_mut(code) {
                            *text = glyph_text(&name).map(Rc::from);
                        }
                        code = code.saturating_add(1);
                    }
                    _ => {}
                }
            }
        }
        Ok(Self { texts, widths: simple_widths(file, dict, &descriptor, name)? })
    }
}

fn simple_widths(
    file: &PdfFile<'_>,
    dict: &Dict,
    descriptor: &Dict,
    name: &str,
) -> Result<[f64; 256], PdfError> {
    let widths = file.get(dict, "Widths")?;
    if widths.array().is_empty() {
        return Ok(std::array::from_fn(|code| default_width(name, code as u8)));
    }
    // A Type 3 font defines its own units.
    let scale = if dict.has_name("Subtype", "Type3") {
        let matrix = file.get(dict, "FontMatrix")?;
        matrix.array().first().and_then(Object::number).unwrap_or(1.0 / EM_SIZE).abs()
    } else {
        1.0 / EM_SIZE
    };
    let missing = file.get(descriptor, "MissingWidth")?.number().unwrap_or(0.0);
    let first = file.get(dict, "FirstChar")?.unsigned().unwrap_or(0);
    let mut ems = [missing * scale; 256];
    for (code, width) in (first..ems.len()).zip(widths.array()) {
        ems[code] = file.resolve(width)?.number().unwrap_or(missing) * scale;
    }
    Ok(ems)
}

impl GlyphWidths {
    fn load(file: &PdfFile<'_>, dict: &Dict) -> Result<Self, PdfError> {
        let default = file.get(dict, "DW")?.number().unwrap_or(EM_SIZE) / EM_SIZE;
        let mut ranges = Vec::new();
        let widths = file.get(dict, "W")?;
        let mut items = widths.array().iter();
        let ems = |width: &Object| -> Result<f64, PdfError> {
            Ok(file.resolve(width)?.number().unwrap_or(0.0) / EM_SIZE)
        };
        // Either `first [width width …]` or `first last width`.
        while let (Some(first), Some(second)) = (items.next(), items.next()) {
            file.budget.spend(1)?;
            let Some(first) = file.resolve(first)?.unsigned() else { break };
            match file.resolve(second)? {
                Object::Array(widths) => {
                    for (glyph, width) in (first..).zip(widths.iter()) {
                        file.budget.spend(1)?;
                        ranges.push((glyph as u32, glyph as u32, ems(width)?));
                    }
                }
                last => {
                    let (Some(last), Some(width)) = (last.unsigned(), items.next()) else { break };
                    ranges.push((first as u32, last as u32, ems(width)?));
                }
            }
            if ranges.len() > MAX_WIDTH_RANGES {
                break;
            }
        }
        ranges.sort_by_key(|range| range.0);
        Ok(Self { default, ranges })
    }

    fn get(&self, glyph: u32) -> f64 {
        let end = self.ranges.partition_point(|range| range.0 <= glyph);
        let range = end.checked_sub(1).map(|index| self.ranges[index]);
        range.filter(|range| glyph <= range.1).map_or(self.default, |range| range.2)
    }
}
