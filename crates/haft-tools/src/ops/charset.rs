//! Decoding text so that it can be encoded again byte for byte, or not at all.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, WINDOWS_1252};

/// Bytes with more control characters than this are not text.
const MAX_CONTROL_PERCENT: usize = 1;

/// The encoding of a text file.
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

/// A file's text, and what is needed to encode it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecodedText {
    pub(crate) text: String,
    pub(crate) charset: Charset,
    pub(crate) bom: bool,
}

/// Decodes `bytes`; `None` if they are not text, or not text that can be encoded again byte for byte.
pub(crate) fn decode(bytes: &[u8]) -> Option<DecodedText> {
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        let text = std::str::from_utf8(rest).ok().filter(|text| !text.contains('\0'))?;
        return Some(DecodedText { text: text.to_owned(), charset: Charset::Utf8, bom: true });
    }
    for (bom, charset) in [(b"\xff\xfe", Charset::Utf16Le), (b"\xfe\xff", Charset::Utf16Be)] {
        if let Some(rest) = bytes.strip_prefix(bom) {
            return Some(DecodedText { text: decode_utf16(rest, charset)?, charset, bom: true });
        }
    }
    if memchr::memchr(0, bytes).is_some() {
        let charset = utf16_without_bom(bytes)?;
        let text = decode_utf16(bytes, charset)?;
        // Small two-byte integers look like UTF-16 too, but decode to control characters.
        let controls = text.chars().filter(|c| u8::try_from(*c).is_ok_and(is_control)).count();
        return (controls * 100 <= text.len() * MAX_CONTROL_PERCENT).then_some(DecodedText {
            text,
            charset,
            bom: false,
        });
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(DecodedText { text: text.to_owned(), charset: Charset::Utf8, bom: false });
    }
    decode_legacy(bytes)
}

/// Encodes text; the error is the first character that the encoding does not have.
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

/// UTF-16 text that is mostly ASCII has many zero bytes, all at even or all at odd offsets.
fn utf16_without_bom(bytes: &[u8]) -> Option<Charset> {
    let zeros = |side: usize| bytes.iter().skip(side).step_by(2).filter(|byte| **byte == 0).count();
    match (zeros(0), zeros(1)) {
        (0, high) if high * 4 >= bytes.len() => Some(Charset::Utf16Le),
        (high, 0) if high * 4 >= bytes.len() => Some(Charset::Utf16Be),
        _ => None,
    }
}

/// Whether a byte is a control character that does not occur in text.
fn is_control(byte: u8) -> bool {
    matches!(byte, 1..=8 | 14..=25 | 28..=31 | 127)
}

fn decode_legacy(bytes: &[u8]) -> Option<DecodedText> {
    if bytes.iter().filter(|byte| is_control(**byte)).count() * 100 > bytes.len() * MAX_CONTROL_PERCENT {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    // Windows-1252 maps every byte, so it is the fallback.
    [guess, WINDOWS_1252].into_iter().find_map(|encoding| {
        let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?.into_owned();
        let charset = Charset::Legacy(encoding);
        (encode(&text, charset, false).as_deref() == Ok(bytes)).then_some(DecodedText {
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
    fn decodes_as(bytes: &[u8], charset: &str, text: &str) {
        let decoded = decode(bytes).unwrap();
        assert_eq!((decoded.charset.name(), decoded.text.as_str()), (charset, text));
        assert_eq!(encode(&decoded.text, decoded.charset, decoded.bom).unwrap(), bytes);
    }

    #[test]
    fn each_encoding_round_trips() {
        decodes_as("grüße\n".as_bytes(), "UTF-8", "grüße\n");
        decodes_as("\u{feff}x".as_bytes(), "UTF-8", "x");
        decodes_as(b"\xff\xfea\0\xe4\0", "UTF-16LE", "aä");
        decodes_as(b"\xfe\xff\0a\0\xe4", "UTF-16BE", "aä");
        decodes_as(b"h\0e\0l\0l\0o\0\r\0\n\0", "UTF-16LE", "hello\r\n");
        decodes_as(b"gr\xfc\xdfe aus K\xf6ln, sch\xf6n", "windows-1252", "grüße aus Köln, schön");
        decodes_as(
            b"\x82\xb1\x82\xf1\x82\xc9\x82\xbf\x82\xcd\x81A\x90\xa2\x8aE",
            "Shift_JIS",
            "こんにちは、世界",
        );
    }

    #[test]
    fn binary_data_is_not_text() {
        assert_eq!(decode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), None);
        assert_eq!(decode(b"a\0b"), None);
        assert_eq!(decode(b"\x7fELF\x02\x01\x01\0\0\0\0\0"), None);
        assert_eq!(decode(b"\x01\0\x02\0A\0\x03\0"), None, "two-byte integers");
        assert_eq!(decode(&[0xff, 0xfe, 0x00, 0xd8]), None, "a lone surrogate cannot be encoded");
        assert_eq!(decode(&(0..=255).collect::<Vec<u8>>()), None);
    }

    #[test]
    fn encode_names_the_missing_character() {
        assert_eq!(encode("a→b", Charset::Legacy(WINDOWS_1252), false), Err('→'));
    }
}
