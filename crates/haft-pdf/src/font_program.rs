//! What embedded fonts say about the characters of their glyphs.

use crate::PdfError;
use crate::budget::WorkBudget;
use crate::lexer::{Lexer, Token};
use crate::object::Object;

/// Subtables of a TrueType `cmap`.
const MAX_SUBTABLES: usize = 64;
const MAX_GLYPHS: usize = 200_000;

/// Returns the codes and glyph names in the encoding of a Type 1 font, which has lines such as `dup 65 /A put`.
pub(crate) fn type1_encoding(bytes: &[u8], budget: &WorkBudget<'_>) -> Result<Vec<(u8, String)>, PdfError> {
    // The encrypted part of the font follows `eexec`.
    let end = memchr::memmem::find(bytes, b"eexec").unwrap_or(0);
    let Some(start) = memchr::memmem::find(&bytes[..end], b"/Encoding") else { return Ok(Vec::new()) };
    let mut lexer = Lexer::for_content(&bytes[start..end]);
    let mut names = Vec::new();
    let mut code = None;
    loop {
        budget.spend(1)?;
        match lexer.next() {
            Token::Value(Object::Number(number)) => code = Some(number),
            Token::Value(Object::Name(name)) => {
                if let Some(code) = code.take().filter(|code| (0.0..256.0).contains(code)) {
                    names.push((code as u8, name.as_ref().to_owned()));
                }
            }
            Token::Keyword(b"readonly") if !names.is_empty() => break,
            Token::End => break,
            _ => {}
        }
    }
    Ok(names)
}

/// Returns the characters of a TrueType font's glyphs, sorted by glyph: the inverse of its `cmap` table.
pub(crate) fn truetype_glyphs(bytes: &[u8], budget: &WorkBudget<'_>) -> Result<Vec<(u32, char)>, PdfError> {
    const UNICODE_PLATFORM_CODE: u16 = 0;
    const WINDOWS_PLATFORM_CODE: u16 = 3;
    let mut glyphs = Vec::new();
    let Some(table) = cmap_table(bytes) else { return Ok(glyphs) };
    let count = u16_at(table, 2).unwrap_or(0);
    for record in 0..usize::from(count).min(MAX_SUBTABLES) {
        let at = 4 + record * 8;
        let (Some(platform), Some(offset)) = (u16_at(table, at), u32_at(table, at + 4)) else { break };
        if platform != UNICODE_PLATFORM_CODE && platform != WINDOWS_PLATFORM_CODE {
            continue;
        }
        let Some(subtable) = table.get(offset as usize..) else { continue };
        match u16_at(subtable, 0) {
            Some(4) => read_format_4(subtable, budget, &mut glyphs)?,
            Some(12) => read_format_12(subtable, budget, &mut glyphs)?,
            _ => {}
        }
    }
    glyphs.sort_by_key(|glyph| glyph.0);
    glyphs.dedup_by_key(|glyph| glyph.0);
    Ok(glyphs)
}

fn cmap_table(bytes: &[u8]) -> Option<&[u8]> {
    let count = u16_at(bytes, 4)?;
    let record = (0..usize::from(count))
        .map(|index| 12 + index * 16)
        .find(|at| bytes.get(*at..*at + 4) == Some(b"cmap".as_slice()))?;
    bytes.get(u32_at(bytes, record + 8)? as usize..)
}

/// Reads ranges of characters of the basic multilingual plane.
fn read_format_4(
    subtable: &[u8],
    budget: &WorkBudget<'_>,
    glyphs: &mut Vec<(u32, char)>,
) -> Result<(), PdfError> {
    // Four arrays of this length follow each other: last codes, first codes, deltas and offsets.
    let array_bytes = usize::from(u16_at(subtable, 6).unwrap_or(0));
    for segment in 0..array_bytes / 2 {
        let last_at = 14 + segment * 2;
        // Two bytes of padding follow the first array.
        let first_at = last_at + array_bytes + 2;
        let offset_at = first_at + 2 * array_bytes;
        let (Some(last), Some(first), Some(delta), Some(offset)) = (
            u16_at(subtable, last_at),
            u16_at(subtable, first_at),
            u16_at(subtable, first_at + array_bytes),
            u16_at(subtable, offset_at),
        ) else {
            return Ok(());
        };
        for code in first..=last {
            budget.spend(1)?;
            let glyph = if offset == 0 {
                code.wrapping_add(delta)
            } else {
                let glyph_at = offset_at + usize::from(offset) + usize::from(code - first) * 2;
                match u16_at(subtable, glyph_at) {
                    Some(0) | None => continue,
                    Some(glyph) => glyph.wrapping_add(delta),
                }
            };
            add_glyph(glyphs, u32::from(glyph), u32::from(code));
        }
    }
    Ok(())
}

/// Reads ranges of any characters.
fn read_format_12(
    subtable: &[u8],
    budget: &WorkBudget<'_>,
    glyphs: &mut Vec<(u32, char)>,
) -> Result<(), PdfError> {
    for group in 0..u32_at(subtable, 12).unwrap_or(0) as usize {
        let at = 16 + group * 12;
        let (Some(first), Some(last), Some(first_glyph)) =
            (u32_at(subtable, at), u32_at(subtable, at + 4), u32_at(subtable, at + 8))
        else {
            return Ok(());
        };
        budget.spend(1)?;
        for (code, glyph) in (first..=last.min(u32::from(char::MAX))).zip(first_glyph..=u32::MAX) {
            budget.spend(1)?;
            add_glyph(glyphs, glyph, code);
        }
    }
    Ok(())
}

fn add_glyph(glyphs: &mut Vec<(u32, char)>, glyph: u32, code: u32) {
    // Symbol fonts have their codes in the private use area, which says nothing about the character.
    let is_private = (0xe000..0xf900).contains(&code);
    if glyph != 0
        && !is_private
        && glyphs.len() < MAX_GLYPHS
        && let Some(char) = char::from_u32(code)
    {
        glyphs.push((glyph, char));
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|two| u16::from_be_bytes(*two))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_be_bytes(*four))
}
