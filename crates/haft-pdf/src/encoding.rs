//! The standard encodings of one-byte codes, and approximate widths of characters.

use encoding_rs::{MACINTOSH, WINDOWS_1252};

/// Adobe's standard encoding from 0xA1 on; a space is an unused code.
const STANDARD_FROM_A1: &str =
    "¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ –†‡· ¶•‚„”»…‰ ¿ `´ˆ˜¯˘˙¨ ˚¸ ˝˛ˇ—                Æ ª    ŁØŒº     æ   ı  łøœß";
/// The Symbol font from 0x20 on.
const SYMBOL_FROM_20: &str =
    " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼";
/// The Symbol font from 0xA0 on.
const SYMBOL_FROM_A0: &str =
    "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ 〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimpleEncoding {
    Standard,
    WinAnsi,
    MacRoman,
    Symbol,
}

impl SimpleEncoding {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "WinAnsiEncoding" => Some(Self::WinAnsi),
            "MacRomanEncoding" => Some(Self::MacRoman),
            "StandardEncoding" => Some(Self::Standard),
            _ => None,
        }
    }

    pub(crate) fn decode(self, code: u8) -> Option<char> {
        let at = |text: &str, first: u8| text.chars().nth(usize::from(code.checked_sub(first)?));
        let char = match (self, code) {
            (Self::Symbol, 0..0xa0) => at(SYMBOL_FROM_20, 0x20),
            (Self::Symbol, _) => at(SYMBOL_FROM_A0, 0xa0),
            (Self::Standard, b'\'') => Some('’'),
            (Self::Standard, b'`') => Some('‘'),
            (Self::Standard, 0x80..) => at(STANDARD_FROM_A1, 0xa1).filter(|char| *char != ' '),
            (Self::MacRoman, _) => MACINTOSH.decode_without_bom_handling(&[code]).0.chars().next(),
            (_, _) => WINDOWS_1252.decode_without_bom_handling(&[code]).0.chars().next(),
        };
        char.filter(|char| !char.is_control())
    }
}

/// The widths of Helvetica from the space on, in thousandths of an em.
const HELVETICA_WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// The width of other characters, in thousandths of an em.
const OTHER_WIDTH: u16 = 556;
const MONOSPACE_WIDTH_EMS: f64 = 0.6;
/// How much narrower Times is than Helvetica.
const SERIF_WIDTH_RATIO: f64 = 0.9;

/// Returns the approximate width of a character, in ems, in a font without widths.
pub(crate) fn default_width(font: &str, code: u8) -> f64 {
    if font.contains("Courier") || font.contains("Mono") {
        return MONOSPACE_WIDTH_EMS;
    }
    let index = code.checked_sub(b' ').map(usize::from);
    let width = index.and_then(|index| HELVETICA_WIDTHS.get(index)).copied().unwrap_or(OTHER_WIDTH);
    let scale = if font.contains("Times") || font.contains("Serif") { SERIF_WIDTH_RATIO } else { 1.0 };
    f64::from(width) / 1_000.0 * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_map_codes_to_characters() {
        let cases = [
            (SimpleEncoding::Standard, 0xfb, 'ß'),
            (SimpleEncoding::Standard, 0xd0, '—'),
            (SimpleEncoding::Standard, 0xe1, 'Æ'),
            (SimpleEncoding::Standard, 0xae, 'ﬁ'),
            (SimpleEncoding::Standard, 0xf5, 'ı'),
            (SimpleEncoding::Standard, 0xb1, '–'),
            (SimpleEncoding::Standard, 0x27, '’'),
            (SimpleEncoding::Symbol, 0x61, 'α'),
            (SimpleEncoding::Symbol, 0x7e, '∼'),
            (SimpleEncoding::Symbol, 0xfe, '⎭'),
            (SimpleEncoding::Symbol, 0xe5, '∑'),
            (SimpleEncoding::Symbol, 0xf2, '∫'),
            (SimpleEncoding::WinAnsi, 0x80, '€'),
            (SimpleEncoding::MacRoman, 0x8a, 'ä'),
        ];
        for (encoding, code, char) in cases {
            assert_eq!(encoding.decode(code), Some(char), "{encoding:?} {code:x}");
        }
        assert_eq!(SimpleEncoding::Standard.decode(0xff), None);
        assert_eq!(SimpleEncoding::WinAnsi.decode(7), None);
    }
}
