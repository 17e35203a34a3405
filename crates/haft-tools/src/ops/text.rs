//! Text in the encodings that real files have: read exactly, written back exactly, or refused.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, WINDOWS_1252};

/// How a file's text is written in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charset {
    Utf8,
    Utf16Le,
    Utf16Be,
    Legacy(&'static Encoding),
}

impl Charset {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Legacy(encoding) => encoding.name(),
        }
    }
}

/// A file's text and how to write it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) text: String,
    pub(crate) charset: Charset,
    pub(crate) bom: bool,
}

/// Reads `bytes` as text; `None` if they are not text, or not text that can be written back byte for byte.
pub(crate) fn decode(bytes: &[u8]) -> Option<Decoded> {
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        let text = std::str::from_utf8(rest).ok().filter(|text| !text.contains('\0'))?;
        return Some(Decoded { text: text.to_owned(), charset: Charset::Utf8, bom: true });
    }
    for (mark, charset) in [(b"\xff\xfe", Charset::Utf16Le), (b"\xfe\xff", Charset::Utf16Be)] {
        if let Some(rest) = bytes.strip_prefix(mark) {
            return Some(Decoded { text: decode_utf16(rest, charset)?, charset, bom: true });
        }
    }
    if memchr::memchr(0, bytes).is_some() {
        let charset = unmarked_utf16(bytes)?;
        let text = decode_utf16(bytes, charset)?;
        // Small numbers of two bytes each look the same; letters among them are an accident.
        let odd = text.chars().filter(|letter| u8::try_from(*letter).is_ok_and(is_odd)).count();
        return (odd * 100 <= text.len()).then_some(Decoded { text, charset, bom: false });
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(Decoded { text: text.to_owned(), charset: Charset::Utf8, bom: false });
    }
    decode_legacy(bytes)
}

/// Writes text the way `like` was written; the error names the first character that its encoding does not have.
pub(crate) fn encode(text: &str, charset: Charset, bom: bool) -> Result<Vec<u8>, char> {
    let mut bytes = Vec::with_capacity(text.len() + 3);
    match charset {
        Charset::Utf8 => {
            if bom {
                bytes.extend_from_slice(b"\xef\xbb\xbf");
            }
            bytes.extend_from_slice(text.as_bytes());
        }
        Charset::Utf16Le | Charset::Utf16Be => {
            let little = charset == Charset::Utf16Le;
            let units = bom.then_some(0xfeff).into_iter().chain(text.encode_utf16());
            bytes.extend(units.flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }));
        }
        Charset::Legacy(encoding) => {
            let (encoded, _, unmappable) = encoding.encode(text);
            if unmappable {
                return Err(text
                    .chars()
                    .find(|c| encoding.encode(c.encode_utf8(&mut [0; 4])).2)
                    .unwrap_or('?'));
            }
            bytes.extend_from_slice(&encoded);
        }
    }
    Ok(bytes)
}

fn decode_utf16(bytes: &[u8], charset: Charset) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let little = charset == Charset::Utf16Le;
    let units =
        units.iter().map(|pair| if little { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) });
    let text = char::decode_utf16(units).collect::<Result<String, _>>().ok()?;
    (!text.contains('\0')).then_some(text)
}

/// UTF-16 without a mark shows in zeros that stand on one side only; other zeros mean that this is no text.
fn unmarked_utf16(bytes: &[u8]) -> Option<Charset> {
    let zeros = |side: usize| bytes.iter().skip(side).step_by(2).filter(|byte| **byte == 0).count();
    match (zeros(0), zeros(1)) {
        (0, high) if high * 4 >= bytes.len() => Some(Charset::Utf16Le),
        (high, 0) if high * 4 >= bytes.len() => Some(Charset::Utf16Be),
        _ => None,
    }
}

/// Whether a control character is one that text does not have.
fn is_odd(byte: u8) -> bool {
    matches!(byte, 1..=8 | 14..=25 | 28..=31 | 127)
}

fn decode_legacy(bytes: &[u8]) -> Option<Decoded> {
    if bytes.iter().filter(|byte| is_odd(**byte)).count() * 100 > bytes.len() {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    // Windows-1252 has a character for every byte, so there is always a way that loses none.
    [guess, WINDOWS_1252].into_iter().find_map(|encoding| {
        let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?.into_owned();
        let charset = Charset::Legacy(encoding);
        (encode(&text, charset, false).as_deref() == Ok(bytes)).then_some(Decoded {
            text,
            charset,
            bom: false,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads_as(bytes: &[u8], charset: &str, text: &str) {
        let decoded = decode(bytes).unwrap();
        assert_eq!((decoded.charset.name(), decoded.text.as_str()), (charset, text));
        assert_eq!(encode(&decoded.text, decoded.charset, decoded.bom).unwrap(), bytes);
    }

    #[test]
    fn each_encoding_comes_back_byte_for_byte() {
        reads_as("grüße\n".as_bytes(), "UTF-8", "grüße\n");
        reads_as("\u{feff}x".as_bytes(), "UTF-8", "x");
        reads_as(b"\xff\xfea\0\xe4\0", "UTF-16LE", "aä");
        reads_as(b"\xfe\xff\0a\0\xe4", "UTF-16BE", "aä");
        reads_as(b"h\0e\0l\0l\0o\0\r\0\n\0", "UTF-16LE", "hello\r\n");
        reads_as(b"gr\xfc\xdfe aus K\xf6ln, sch\xf6n", "windows-1252", "grüße aus Köln, schön");
        reads_as(
            b"\x82\xb1\x82\xf1\x82\xc9\x82\xbf\x82\xcd\x81A\x90\xa2\x8aE",
            "Shift_JIS",
            "こんにちは、世界",
        );
    }

    #[test]
    fn what_is_not_text_is_not_taken_for_it() {
        assert_eq!(decode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), None);
        assert_eq!(decode(b"a\0b"), None);
        assert_eq!(decode(b"\x7fELF\x02\x01\x01\0\0\0\0\0"), None);
        assert_eq!(decode(b"\x01\0\x02\0A\0\x03\0"), None, "numbers of two bytes");
        assert_eq!(decode(&[0xff, 0xfe, 0x00, 0xd8]), None, "a lone surrogate cannot be written back");
        assert_eq!(decode(&(0..=255).collect::<Vec<u8>>()), None);
    }

    #[test]
    fn a_character_the_encoding_lacks_is_named() {
        assert_eq!(encode("a→b", Charset::Legacy(WINDOWS_1252), false), Err('→'));
    }
}
