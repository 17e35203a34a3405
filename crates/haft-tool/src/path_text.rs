//! Paths as text. A Unix path is bytes, but JSON is text: a byte that is not UTF-8 is written as a NUL, which no real path can
//! contain, and two hexadecimal digits.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serializer};

/// The path as text from which [`path_from_text`] makes the same bytes again.
pub fn path_to_text(path: &Path) -> Cow<'_, str> {
    if let Some(text) = path.to_str() {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\0{byte:02x}")));
    }
    Cow::Owned(text)
}

/// The path that [`path_to_text`] made `text` of.
pub fn path_from_text(text: &str) -> PathBuf {
    let mut parts = text.split('\0');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(0));
        bytes.extend_from_slice(&part.as_bytes()[if byte.is_some() { 2 } else { 0 }..]);
    }
    OsString::from_vec(bytes).into()
}

pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path_to_text(path))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Ok(path_from_text(&Cow::<str>::deserialize(deserializer)?))
}

/// The same for a path that may be missing.
pub(crate) mod optional {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes fields this way")]
    pub(crate) fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => serializer.serialize_some(&super::path_to_text(path)),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(|text| super::path_from_text(&text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_comes_back_byte_for_byte() {
        for bytes in [&b"/plain"[..], b"/a\xffb", b"\xff\xfe0", "/grüße".as_bytes(), b"/\xc3", b""] {
            let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
            assert_eq!(path_from_text(&path_to_text(&path)), path);
        }
    }
}
