//! The bytes of streams: found in the file, decrypted and decoded.

use std::borrow::Cow;
use std::rc::Rc;

use crate::PdfError;
use crate::file::PdfFile;
use crate::filter::{self, FilterParams};
use crate::lexer::Lexer;
use crate::object::{Dict, Object, PdfStream};

/// Filters applied to one stream.
const MAX_FILTERS: usize = 6;
/// `endstream` must end within this many bytes after the end of a stream.
const ENDSTREAM_SEARCH_BYTES: usize = 64;

/// Bytes, and the name of the filter that was not applied to them.
type DecodedStream<'a> = (Cow<'a, [u8]>, Option<Rc<str>>);

impl<'a> PdfFile<'a> {
    /// Returns the decoded bytes of a stream; nothing for images.
    pub(crate) fn decode(&self, stream: &PdfStream) -> Result<Vec<u8>, PdfError> {
        let (bytes, image_filter) = self.decode_until_image(stream)?;
        Ok(if image_filter.is_none() { bytes.into_owned() } else { Vec::new() })
    }

    /// Returns the JPEG file in a stream that is one.
    pub(crate) fn jpeg(&self, stream: &PdfStream) -> Result<Option<Vec<u8>>, PdfError> {
        let (bytes, filter) = self.decode_until_image(stream)?;
        Ok(filter.filter(|name| matches!(&**name, "DCTDecode" | "DCT")).map(|_| bytes.into_owned()))
    }

    /// Applies filters up to the first that is unknown or for images.
    fn decode_until_image(&self, stream: &PdfStream) -> Result<DecodedStream<'a>, PdfError> {
        let filters = self.list(&stream.dict, ["Filter", "F"])?;
        let params = self.list(&stream.dict, ["DecodeParms", "DP"])?;
        let mut bytes = self.encoded_bytes(stream)?;
        for (index, name) in filters.iter().enumerate() {
            let name = self.resolve(name)?;
            let dict = match params.get(index) {
                Some(params) => self.resolve(params)?.dict().unwrap_or_default(),
                None => Rc::default(),
            };
            let number = |key, default| -> Result<usize, PdfError> {
                Ok(self.get(&dict, key)?.unsigned().unwrap_or(default))
            };
            let params = FilterParams {
                predictor: number("Predictor", 1)?,
                colors: number("Colors", 1)?,
                bits_per_component: number("BitsPerComponent", 8)?,
                columns: number("Columns", 1)?,
                early_change: number("EarlyChange", 1)? != 0,
            };
            let name = name.name().unwrap_or_default();
            let Some(decoded) = filter::decode(name, &bytes, params) else {
                return Ok((bytes, Some(name.into())));
            };
            self.budget.spend_decoded(decoded.len())?;
            bytes = Cow::Owned(decoded);
        }
        Ok((bytes, None))
    }

    /// Returns the decrypted bytes of a stream before any filter.
    fn encoded_bytes(&self, stream: &PdfStream) -> Result<Cow<'a, [u8]>, PdfError> {
        let bytes = self.stored_bytes(stream)?;
        let bytes = &bytes[..bytes.len().min(filter::MAX_OUTPUT_BYTES)];
        self.budget.spend_decoded(bytes.len())?;
        let is_plain = stream.dict.has_name("Type", "XRef") || self.is_exempt(&stream.dict)?;
        match &*self.decryptor.borrow() {
            Some(decryptor) if !is_plain => Ok(decryptor.decrypt(bytes, stream.id, stream.generation).into()),
            _ => Ok(bytes.into()),
        }
    }

    /// Whether a stream of an encrypted file declares that it is not encrypted.
    fn is_exempt(&self, dict: &Dict) -> Result<bool, PdfError> {
        let filters = self.list(dict, ["Filter", "F"])?;
        let params = self.list(dict, ["DecodeParms", "DP"])?;
        let has_crypt_filter = filters.first().and_then(Object::name) == Some("Crypt");
        let params = params.first().and_then(Object::dict);
        Ok(has_crypt_filter && params.is_none_or(|dict| !dict.has_name("Name", "StdCF")))
    }

    /// Returns the bytes between `stream` and `endstream`. A wrong `Length` is ignored.
    fn stored_bytes(&self, stream: &PdfStream) -> Result<&'a [u8], PdfError> {
        let rest = self.bytes.get(stream.start..).unwrap_or_default();
        if let Some(length) = self.get(&stream.dict, "Length")?.unsigned()
            && length <= rest.len()
        {
            let after = &rest[length..rest.len().min(length + ENDSTREAM_SEARCH_BYTES)];
            if Lexer::for_file(after, 0).skip_keyword(b"endstream") {
                return Ok(&rest[..length]);
            }
        }
        let end = memchr::memmem::find(rest, b"endstream").unwrap_or(rest.len());
        self.budget.spend_searched(end)?;
        let bytes = &rest[..end];
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        Ok(bytes.strip_suffix(b"\r").unwrap_or(bytes))
    }

    /// Returns the array under the long or else the short key. A single value counts as an array of one.
    fn list(&self, dict: &Dict, [long, short]: [&str; 2]) -> Result<Vec<Object>, PdfError> {
        let object = self.get(dict, if dict.contains(long) { long } else { short })?;
        Ok(match object {
            Object::Null => Vec::new(),
            Object::Array(items) => items.iter().take(MAX_FILTERS).cloned().collect(),
            other => vec![other],
        })
    }
}
