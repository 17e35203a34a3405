//! A parser for git's configuration format that accepts exactly what git accepts.

/// A configuration, up to the first error.
#[derive(Debug, Default)]
pub(super) struct GitConfig {
    /// The first is the unnamed one above all headers.
    pub(super) sections: Vec<ConfigSection>,
    pub(super) entries: Vec<ConfigEntry>,
    /// The line of the first error.
    pub(super) error_line: Option<usize>,
}

/// A section header.
#[derive(Debug, Default)]
pub(super) struct ConfigSection {
    /// Section and subsection with a dot between them, the section in lower case.
    pub(super) name: Vec<u8>,
    /// Length of the section within the name.
    section_length: usize,
}

impl ConfigSection {
    fn new(name: Vec<u8>) -> Self {
        let section_length = name.iter().position(|byte| *byte == b'.').unwrap_or(name.len());
        Self { name, section_length }
    }

    pub(super) fn section(&self) -> &[u8] {
        &self.name[..self.section_length]
    }

    pub(super) fn subsection(&self) -> Option<&[u8]> {
        self.name.get(self.section_length + 1..)
    }
}

/// A key with its value.
#[derive(Debug)]
pub(super) struct ConfigEntry {
    /// Index of its section.
    pub(super) section: usize,
    /// In lower case.
    pub(super) key: Vec<u8>,
    /// `None` for a key alone, which means true.
    pub(super) value: Option<Vec<u8>>,
}

/// Git would report an error.
struct ParseError;

pub(super) fn parse(bytes: &[u8]) -> GitConfig {
    // For git a name or a value ends at a NUL, so `[core "fsmonitor\0"]` sets core.fsmonitor. Treated as an error.
    let nul = bytes.iter().position(|byte| *byte == 0);
    let mut parser =
        ConfigParser { bytes: &bytes[..nul.unwrap_or(bytes.len())], at: 0, line: 1, ended: false };
    let mut config = GitConfig { sections: vec![ConfigSection::default()], ..GitConfig::default() };
    let outcome = parser.parse(&mut config);
    if outcome.is_err() || nul.is_some() {
        config.error_line = Some(parser.line);
    }
    config
}

struct ConfigParser<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
    ended: bool,
}

impl ConfigParser<'_> {
    fn parse(&mut self, config: &mut GitConfig) -> Result<(), ParseError> {
        self.skip_bom()?;
        loop {
            match self.next() {
                b'\n' if self.ended => return Ok(()),
                byte if is_space(byte) => {}
                b'#' | b';' => while !matches!(self.next(), b'\n') {},
                b'[' => config.sections.push(self.header()?),
                byte if byte.is_ascii_alphabetic() => {
                    let (key, value) = self.entry(byte)?;
                    config.entries.push(ConfigEntry { section: config.sections.len() - 1, key, value });
                }
                _ => return Err(ParseError),
            }
        }
    }

    /// The next byte. CR LF counts as one line end, EOF as another.
    fn next(&mut self) -> u8 {
        let Some(&byte) = self.bytes.get(self.at) else {
            self.ended = true;
            return b'\n';
        };
        self.at += 1;
        let byte = match (byte, self.bytes.get(self.at)) {
            (b'\r', Some(b'\n')) => {
                self.at += 1;
                b'\n'
            }
            _ => byte,
        };
        self.line += usize::from(byte == b'\n');
        byte
    }

    /// Skips a byte order mark; a part of one is an error.
    fn skip_bom(&mut self) -> Result<(), ParseError> {
        if self.bytes.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        } else if self.bytes.starts_with(b"\xef") {
            return Err(ParseError);
        }
        Ok(())
    }

    /// A header, after its opening bracket: `[a]`, `[a.b]` or `[a "b"]`.
    fn header(&mut self) -> Result<ConfigSection, ParseError> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                b']' if !name.is_empty() => return Ok(ConfigSection::new(name)),
                b'\n' => return Err(ParseError),
                byte if is_space(byte) => break,
                byte if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return Err(ParseError),
            }
        }
        name.push(b'.');
        loop {
            match self.next() {
                b'"' => break,
                b'\n' => return Err(ParseError),
                byte if is_space(byte) => {}
                _ => return Err(ParseError),
            }
        }
        loop {
            match self.next() {
                b'"' => break,
                b'\n' => return Err(ParseError),
                b'\\' => match self.next() {
                    b'\n' => return Err(ParseError),
                    byte => name.push(byte),
                },
                byte => name.push(byte),
            }
        }
        if self.next() == b']' { Ok(ConfigSection::new(name)) } else { Err(ParseError) }
    }

    /// A key after its first letter, and its value.
    fn entry(&mut self, first: u8) -> Result<(Vec<u8>, Option<Vec<u8>>), ParseError> {
        let mut key = vec![first.to_ascii_lowercase()];
        let mut byte = self.next();
        while is_key(byte) {
            key.push(byte.to_ascii_lowercase());
            byte = self.next();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next();
        }
        match byte {
            b'\n' => Ok((key, None)),
            b'=' => Ok((key, Some(self.value()?))),
            _ => Err(ParseError),
        }
    }

    fn value(&mut self) -> Result<Vec<u8>, ParseError> {
        let mut value = Vec::new();
        let mut quoted = false;
        // Start of trailing space, which is dropped.
        let mut end = None;
        loop {
            match self.next() {
                b'\n' if quoted => return Err(ParseError),
                b'\n' => break,
                byte if is_space(byte) && !quoted => {
                    if !value.is_empty() {
                        end.get_or_insert(value.len());
                        value.push(byte);
                    }
                }
                b';' | b'#' if !quoted => {
                    while !matches!(self.next(), b'\n') {}
                    break;
                }
                byte => {
                    end = None;
                    match byte {
                        b'"' => quoted = !quoted,
                        b'\\' => value.extend(self.escape()?),
                        byte => value.push(byte),
                    }
                }
            }
        }
        value.truncate(end.unwrap_or(value.len()));
        Ok(value)
    }

    /// The byte that an escape sequence means; `None` for a continued line.
    fn escape(&mut self) -> Result<Option<u8>, ParseError> {
        match self.next() {
            b'\n' => Ok(None),
            b't' => Ok(Some(b'\t')),
            b'b' => Ok(Some(8)),
            b'n' => Ok(Some(b'\n')),
            byte @ (b'\\' | b'"') => Ok(Some(byte)),
            _ => Err(ParseError),
        }
    }
}

/// Git's `isspace`, which excludes some of C's.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}
