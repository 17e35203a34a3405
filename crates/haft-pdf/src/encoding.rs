//! The characters of one-byte codes in fonts that have no table of their own.

use encoding_rs::{MACINTOSH, WINDOWS_1252};

/// What Adobe's standard encoding has from 0xA1 on; a space is none.
const STANDARD: &str =
    "¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ –†‡· ¶•‚„”»…‰ ¿ `´ˆ˜¯˘˙¨ ˚¸ ˝˛ˇ—                Æ ª    ŁØŒº     æ   ı  łøœß";
/// The Symbol font from 0x20 and from 0xA0 on.
const SYMBOL_LOW: &str =
    " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼";
const SYMBOL_HIGH: &str =
    "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ 〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Standard,
    WinAnsi,
    MacRoman,
    Symbol,
}

impl Encoding {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "WinAnsiEncoding" => Some(Self::WinAnsi),
            "MacRomanEncoding" => Some(Self::MacRoman),
            "StandardEncoding" => Some(Self::Standard),
            _ => None,
        }
    }

    /// The character of `code`.
    pub(crate) fn char(self, code: u8) -> Option<char> {
        let at = |text: &str, first: u8| text.chars().nth(usize::from(code.checked_sub(first)?));
        let char = match (self, code) {
            (Self::Symbol, 0..0xa0) => at(SYMBOL_LOW, 0x20),
            (Self::Symbol, _) => at(SYMBOL_HIGH, 0xa0),
            (Self::Standard, b'\'') => Some('’'),
            (Self::Standard, b'`') => Some('‘'),
            (Self::Standard, 0x80..) => at(STANDARD, 0xa1).filter(|char| *char != ' '),
            (Self::MacRoman, _) => MACINTOSH.decode_without_bom_handling(&[code]).0.chars().next(),
            (_, _) => WINDOWS_1252.decode_without_bom_handling(&[code]).0.chars().next(),
        };
        char.filter(|char| !char.is_control())
    }
}

/// Widths of Helvetica from the space on, in thousandths, for fonts that name none.
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// How wide a character is about, in ems, in a font that does not say.
pub(crate) fn usual_width(font: &str, code: u8) -> f64 {
    if font.contains("Courier") || font.contains("Mono") {
        return 0.6;
    }
    let wide = code.checked_sub(0x20).and_then(|at| WIDTHS.get(usize::from(at))).copied().unwrap_or(556);
    let narrower = if font.contains("Times") || font.contains("Serif") { 0.9 } else { 1.0 };
    f64::from(wide) / 1_000.0 * narrower
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_its_characters_in_their_places() {
        let cases = [
            (Encoding::Standard, 0xfb, 'ß'),
            (Encoding::Standard, 0xd0, '—'),
            (Encoding::Standard, 0xe1, 'Æ'),
            (Encoding::Standard, 0xae, 'ﬁ'),
            (Encoding::Standard, 0xf5, 'ı'),
            (Encoding::Standard, 0xb1, '–'),
            (Encoding::Standard, 0x27, '’'),
            (Encoding::Symbol, 0x61, 'α'),
            (Encoding::Symbol, 0x7e, '∼'),
            (Encoding::Symbol, 0xfe, '⎭'),
            (Encoding::Symbol, 0xe5, '∑'),
            (Encoding::Symbol, 0xf2, '∫'),
            (Encoding::WinAnsi, 0x80, '€'),
            (Encoding::MacRoman, 0x8a, 'ä'),
        ];
        for (encoding, code, char) in cases {
            assert_eq!(encoding.char(code), Some(char), "{encoding:?} {code:x}");
        }
        assert_eq!(Encoding::Standard.char(0xff), None);
        assert_eq!(Encoding::WinAnsi.char(7), None);
    }
}
