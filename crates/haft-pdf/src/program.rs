//! What font programs inside the file say about their own glyphs.

use crate::Fault;
use crate::budget::Budget;
use crate::lexer::{Lexer, Token};
use crate::object::Object;

/// The readable part of a Type 1 font ends here.
const SEALED: &[u8] = b"eexec";

/// The codes and glyph names of a Type 1 font: `dup 65 /A put`.
pub(crate) fn type1(bytes: &[u8], budget: &Budget<'_>) -> Result<Vec<(u8, String)>, Fault> {
    let end = memchr::memmem::find(bytes, SEALED).unwrap_or(0);
    let Some(start) = memchr::memmem::find(&bytes[..end], b"/Encoding") else { return Ok(Vec::new()) };
    let mut lexer = Lexer::content(&bytes[start..end]);
    let mut codes = Vec::new();
    let mut code = None;
    loop {
        budget.steps(1)?;
        match lexer.next() {
            Token::Value(Object::Number(number)) => code = Some(number),
            Token::Value(Object::Name(name)) => {
                if let Some(code) = code.take().filter(|code| (0.0..256.0).contains(code)) {
                    codes.push((code as u8, name.as_ref().to_owned()));
                }
            }
            Token::Word(b"readonly") if !codes.is_empty() => break,
            Token::End => break,
            _ => {}
        }
    }
    Ok(codes)
}

/// The characters of a TrueType font's glyphs, sorted by glyph: its `cmap` table read backwards.
pub(crate) fn truetype(bytes: &[u8], budget: &Budget<'_>) -> Result<Vec<(u32, char)>, Fault> {
    let mut glyphs = Vec::new();
    let Some(table) = cmap_table(bytes) else { return Ok(glyphs) };
    let count = half(table, 2).unwrap_or(0);
    for record in 0..usize::from(count).min(64) {
        let at = 4 + record * 8;
        let (Some(platform), Some(offset)) = (half(table, at), word(table, at + 4)) else { break };
        if platform != 0 && platform != 3 {
            continue;
        }
        let Some(sub) = table.get(offset as usize..) else { continue };
        match half(sub, 0) {
            Some(4) => segments(sub, budget, &mut glyphs)?,
            Some(12) => groups(sub, budget, &mut glyphs)?,
            _ => {}
        }
    }
    glyphs.sort_by_key(|glyph| glyph.0);
    glyphs.dedup_by_key(|glyph| glyph.0);
    Ok(glyphs)
}

fn cmap_table(bytes: &[u8]) -> Option<&[u8]> {
    let count = half(bytes, 4)?;
    let record = (0..usize::from(count))
        .map(|index| 12 + index * 16)
        .find(|at| bytes.get(*at..*at + 4) == Some(b"cmap".as_slice()))?;
    bytes.get(word(bytes, record + 8)? as usize..)
}

/// Format 4: runs of characters in the first plane.
fn segments(sub: &[u8], budget: &Budget<'_>, glyphs: &mut Vec<(u32, char)>) -> Result<(), Fault> {
    let doubled = usize::from(half(sub, 6).unwrap_or(0));
    for segment in 0..doubled / 2 {
        let at = 14 + segment * 2;
        let field = |part: usize| half(sub, at + part * doubled + if part > 0 { 2 } else { 0 });
        let (Some(last), Some(first), Some(delta), Some(range)) = (field(0), field(1), field(2), field(3))
        else {
            return Ok(());
        };
        for code in first..=last {
            budget.steps(1)?;
            let glyph = if range == 0 {
                code.wrapping_add(delta)
            } else {
                let place = at + 3 * doubled + 2 + usize::from(range) + usize::from(code - first) * 2;
                match half(sub, place) {
                    Some(0) | None => continue,
                    Some(glyph) => glyph.wrapping_add(delta),
                }
            };
            keep(glyphs, u32::from(glyph), u32::from(code));
        }
    }
    Ok(())
}

/// Format 12: runs of any characters.
fn groups(sub: &[u8], budget: &Budget<'_>, glyphs: &mut Vec<(u32, char)>) -> Result<(), Fault> {
    for group in 0..word(sub, 12).unwrap_or(0) as usize {
        let at = 16 + group * 12;
        let (Some(first), Some(last), Some(glyph)) = (word(sub, at), word(sub, at + 4), word(sub, at + 8))
        else {
            return Ok(());
        };
        for (code, glyph) in (first..=last.min(0x10_ffff)).zip(glyph..) {
            budget.steps(1)?;
            keep(glyphs, glyph, code);
        }
    }
    Ok(())
}

fn keep(glyphs: &mut Vec<(u32, char)>, glyph: u32, code: u32) {
    const MOST_GLYPHS: usize = 200_000;
    // Symbol fonts keep their codes in a private area, where they say nothing.
    let private = (0xe000..0xf900).contains(&code);
    if let Some(char) = char::from_u32(code).filter(|_| !private && glyph != 0 && glyphs.len() < MOST_GLYPHS)
    {
        glyphs.push((glyph, char));
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|two| u16::from_be_bytes(*two))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_be_bytes(*four))
}
