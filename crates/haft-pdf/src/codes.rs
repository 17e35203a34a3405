//! How the strings of a composite font are cut into codes.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GB18030, SHIFT_JIS};

use crate::cmap::CMap;

#[derive(Debug)]
pub(crate) enum Codes {
    /// Two bytes that number a glyph.
    Pairs,
    /// As a map in the file says.
    Map(Box<CMap>),
    /// The codes are Unicode themselves.
    Utf16,
    Utf8,
    Utf32,
    /// The codes are those of an older character set.
    Legacy(&'static Encoding),
    /// Rows and cells of the Japanese standard.
    Jis,
}

/// One code.
pub(crate) struct Code {
    pub(crate) code: u32,
    pub(crate) length: usize,
    /// The number of its glyph, where that is known.
    pub(crate) cid: u32,
    /// What it says, where the code itself tells.
    pub(crate) text: Option<String>,
}

impl Codes {
    /// One of the encodings that readers must know by name.
    pub(crate) fn named(name: &str) -> Self {
        let has = |part: &str| name.contains(part);
        if name.starts_with("Identity") {
            Self::Pairs
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
            Self::Pairs
        }
    }

    /// The first code of `bytes`, which are not empty.
    pub(crate) fn next(&self, bytes: &[u8]) -> Code {
        let pair = match bytes {
            [high, low, ..] => u16::from_be_bytes([*high, *low]),
            [byte] => u16::from(*byte),
            [] => 0,
        };
        let code = u32::from(pair);
        match self {
            Self::Pairs => Code { code, length: 2, cid: code, text: None },
            Self::Map(map) => {
                let (code, length) = map.next(bytes);
                Code { code, length, cid: map.cid_of(code), text: None }
            }
            Self::Utf16 => {
                let four = bytes.first_chunk().map_or(0, |four| u32::from_be_bytes(*four));
                // Two units together are one character beyond the first plane.
                let both = [(four >> 16) as u16, (four & 0xffff) as u16];
                if let Some(text) =
                    String::from_utf16(&both).ok().filter(|_| (0xd800..0xdc00).contains(&pair))
                {
                    return Code { code: four, length: 4, cid: u32::MAX, text: Some(text) };
                }
                Code { code, length: 2, cid: u32::MAX, text: char::from_u32(code).map(String::from) }
            }
            Self::Utf32 => {
                let four = bytes.first_chunk().map_or(0, |four| u32::from_be_bytes(*four));
                let text = char::from_u32(four).map(String::from);
                Code { code: four, length: 4, cid: u32::MAX, text }
            }
            Self::Utf8 => {
                let length = match bytes.first() {
                    Some(0xf0..) => 4,
                    Some(0xe0..) => 3,
                    Some(0xc0..) => 2,
                    _ => 1,
                };
                spelled(encoding_rs::UTF_8, bytes, length)
            }
            Self::Legacy(encoding) => {
                let single = match bytes.first().copied().unwrap_or(0) {
                    0..0x80 => true,
                    0xa0..0xe0 => *encoding == SHIFT_JIS,
                    _ => false,
                };
                let four = *encoding == GB18030 && matches!(bytes, [_, b'0'..=b'9', ..]);
                spelled(
                    encoding,
                    bytes,
                    if single {
                        1
                    } else if four {
                        4
                    } else {
                        2
                    },
                )
            }
            Self::Jis => {
                let raised = (pair | 0x8080).to_be_bytes();
                Code { length: 2, ..spelled(EUC_JP, &raised, 2) }
            }
        }
    }
}

fn spelled(encoding: &'static Encoding, bytes: &[u8], length: usize) -> Code {
    let bytes = &bytes[..length.min(bytes.len())];
    let (text, broken) = encoding.decode_without_bom_handling(bytes);
    let code = bytes.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
    Code { code, length, cid: u32::MAX, text: (!broken).then(|| text.into_owned()) }
}
