//! How the strings of a composite font divide into character codes.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GB18030, SHIFT_JIS};

use crate::cmap::CMap;

/// The glyph number of codes that are characters and not glyph numbers.
const NO_CID_CODE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) enum CompositeEncoding {
    /// Two bytes are a glyph number.
    Identity,
    /// A table in the file.
    CMap(Box<CMap>),
    Utf8,
    Utf16,
    Utf32,
    /// An older character set for Chinese, Japanese or Korean.
    Legacy(&'static Encoding),
    /// Rows and cells of JIS X 0208, seven bits each.
    Jis,
}

/// One code of a string.
pub(crate) struct CharCode {
    pub(crate) code: u32,
    pub(crate) length: usize,
    /// The glyph number.
    pub(crate) cid: u32,
    /// The characters, where the encoding defines them.
    pub(crate) text: Option<String>,
}

impl CompositeEncoding {
    /// Returns the predefined encoding with this name.
    pub(crate) fn from_name(name: &str) -> Self {
        let has = |part: &str| name.contains(part);
        if name.starts_with("Identity") {
            Self::Identity
        } else if has("UCS2") || has("UTF16") {
            Self::Utf16
        } else if has("UTF8") {
            Self::Utf8
        } else if has("UTF32") {
            Self::Utf32
        } else if has("RKSJ") {
            Self::Legacy(SHIFT_JIS)
        } else if has("B5") {
            Self::Legacy(BIG5)
        } else if has("KSC") {
            Self::Legacy(EUC_KR)
        } else if name.starts_with("GB") {
            Self::Legacy(GB18030)
        } else if has("EUC-") {
            Self::Legacy(EUC_JP)
        } else if matches!(name, "H" | "V") {
            Self::Jis
        } else {
            Self::Identity
        }
    }

    /// Returns the first code of `bytes`, which must not be empty. Its length may exceed theirs.
    pub(crate) fn next_code(&self, bytes: &[u8]) -> CharCode {
        let first_two = match bytes {
            [high, low, ..] => u16::from_be_bytes([*high, *low]),
            [byte] => u16::from(*byte),
            [] => 0,
        };
        let code = u32::from(first_two);
        let first_four = || bytes.first_chunk().map_or(0, |four| u32::from_be_bytes(*four));
        match self {
            Self::Identity => CharCode { code, length: 2, cid: code, text: None },
            Self::CMap(map) => {
                let (code, length) = map.next_code(bytes);
                CharCode { code, length, cid: map.cid(code), text: None }
            }
            Self::Utf16 => {
                let pair = first_four();
                match String::from_utf16(&[(pair >> 16) as u16, pair as u16]) {
                    Ok(text) if (0xd800..0xdc00).contains(&first_two) => {
                        CharCode { code: pair, length: 4, cid: NO_CID_CODE, text: Some(text) }
                    }
                    _ => CharCode {
                        code,
                        length: 2,
                        cid: NO_CID_CODE,
                        text: char::from_u32(code).map(String::from),
                    },
                }
            }
            Self::Utf32 => {
                let code = first_four();
                CharCode { code, length: 4, cid: NO_CID_CODE, text: char::from_u32(code).map(String::from) }
            }
            Self::Utf8 => {
                let length = match bytes.first() {
                    Some(0xf0..) => 4,
                    Some(0xe0..) => 3,
                    Some(0xc0..) => 2,
                    _ => 1,
                };
                decode(encoding_rs::UTF_8, bytes, length)
            }
            Self::Legacy(encoding) => {
                let length = match bytes {
                    [0..0x80, ..] => 1,
                    [0xa0..0xe0, ..] if *encoding == SHIFT_JIS => 1,
                    [_, b'0'..=b'9', ..] if *encoding == GB18030 => 4,
                    _ => 2,
                };
                decode(encoding, bytes, length)
            }
            Self::Jis => decode(EUC_JP, &(first_two | 0x8080).to_be_bytes(), 2),
        }
    }
}

fn decode(encoding: &'static Encoding, bytes: &[u8], length: usize) -> CharCode {
    let bytes = &bytes[..length.min(bytes.len())];
    let (text, has_errors) = encoding.decode_without_bom_handling(bytes);
    let code = bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
    CharCode { code, length, cid: NO_CID_CODE, text: (!has_errors).then(|| text.into_owned()) }
}
