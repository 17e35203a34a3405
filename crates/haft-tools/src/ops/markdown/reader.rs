//! Input for the tokenizer that bounds its recursion.

use std::{fmt, mem};

use html5gum::{Readable, Reader, StringReader};

/// Reads a string and fails once after each double quote that ends an attribute.
///
/// html5gum calls itself for every `a="b"` in a tag, so that a hostile page overflows the stack. At this point all bytes read so
/// far are processed: an error returns to the iterator, which continues in the same state.
pub(super) struct InterruptingReader<'a> {
    reader: StringReader<'a>,
    after_quote: bool,
}

/// The error of an [`InterruptingReader`]; tokenizing can continue.
#[derive(Debug)]
pub(super) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

impl<'a> InterruptingReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { reader: text.to_reader(), after_quote: false }
    }
}

impl Reader for InterruptingReader<'_> {
    type Error = Interrupted;

    fn read_byte(&mut self) -> Result<Option<u8>, Interrupted> {
        if mem::take(&mut self.after_quote) {
            return Err(Interrupted);
        }
        let Ok(byte) = self.reader.read_byte();
        Ok(byte)
    }

    fn try_read_string(&mut self, text: &[u8], case_sensitive: bool) -> Result<bool, Interrupted> {
        self.after_quote = false;
        let Ok(found) = self.reader.try_read_string(text, case_sensitive);
        Ok(found)
    }

    fn read_until<'b>(
        &'b mut self,
        needle: &[u8],
        char_buf: &'b mut [u8; 4],
    ) -> Result<Option<&'b [u8]>, Interrupted> {
        let Ok(bytes) = self.reader.read_until(needle, char_buf);
        self.after_quote = bytes == Some(b"\"");
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use html5gum::Tokenizer;

    use super::*;

    #[test]
    fn interruptions_do_not_change_the_tokens() {
        let seeds: [&[u8]; 4] = [
            b"<p a=\"1\"b='2'c=3 d>x&amp;y&#65;\r\n</p><!-- c --><!DOCTYPE html PUBLIC \"a\" 'b'>",
            b"text &notit; <a href=\"x\ty\"title=\"&quot;\"/>\0</a ><br/>",
            b"<![CDATA[x]]><?php x ?></><!x><a =b ==\"c\" d=\"\n\" e=\"\">",
            b"a\rb\r\nc\n\rd <i\r\nx=\"\r\n\"\ry>",
        ];
        haft_fuzz::check(&seeds, |bytes| {
            // Few enough for the plain tokenizer's recursion.
            let text: String = String::from_utf8_lossy(bytes).chars().take(1_000).collect();
            let expected: Vec<_> = Tokenizer::new(&text).map(|Ok(token)| token).collect();
            let actual: Vec<_> = Tokenizer::new(InterruptingReader::new(&text)).flatten().collect();
            assert_eq!(actual, expected);
        });
    }
}
