//! Git's configuration format, read as git reads it: also its odd corners, for that is where things hide.

/// A configuration, as far as it can be read.
#[derive(Debug, Default)]
pub(super) struct Config {
    /// The first is the nameless one above all headers.
    pub(super) sections: Vec<Section>,
    pub(super) entries: Vec<Entry>,
    /// The line on which git would stop reading.
    pub(super) broken: Option<usize>,
}

/// A header.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// Section and subsection with a dot between them, the section in small letters.
    pub(super) name: Vec<u8>,
    /// Where the section ends within the name.
    split: usize,
}

impl Section {
    fn new(name: Vec<u8>) -> Self {
        let split = name.iter().position(|byte| *byte == b'.').unwrap_or(name.len());
        Self { name, split }
    }

    pub(super) fn section(&self) -> &[u8] {
        &self.name[..self.split]
    }

    pub(super) fn subsection(&self) -> Option<&[u8]> {
        self.name.get(self.split + 1..)
    }
}

/// A key with its value.
#[derive(Debug)]
pub(super) struct Entry {
    /// Which section it is in, by number.
    pub(super) section: usize,
    /// In small letters.
    pub(super) key: Vec<u8>,
    /// A key alone has none, and then means "true".
    pub(super) value: Option<Vec<u8>>,
}

/// Why reading stops.
struct Broken;

pub(super) fn parse(bytes: &[u8]) -> Config {
    // Git takes a name or a value to end at a NUL, so that `[core "fsmonitor\0"]` sets core.fsmonitor. Nobody writes
    // that in good faith.
    let readable = bytes.iter().position(|byte| *byte == 0);
    let mut reader =
        Reader { bytes: &bytes[..readable.unwrap_or(bytes.len())], at: 0, line: 1, ended: false };
    let mut config = Config { sections: vec![Section::default()], ..Config::default() };
    let outcome = reader.read(&mut config);
    if outcome.is_err() || readable.is_some() {
        config.broken = Some(reader.line);
    }
    config
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
    ended: bool,
}

impl Reader<'_> {
    fn read(&mut self, config: &mut Config) -> Result<(), Broken> {
        self.skip_mark()?;
        loop {
            match self.next() {
                b'\n' if self.ended => return Ok(()),
                byte if is_space(byte) => {}
                b'#' | b';' => while !matches!(self.next(), b'\n') {},
                b'[' => config.sections.push(self.header()?),
                byte if byte.is_ascii_alphabetic() => {
                    let (key, value) = self.entry(byte)?;
                    config.entries.push(Entry { section: config.sections.len() - 1, key, value });
                }
                _ => return Err(Broken),
            }
        }
    }

    /// The next byte. A line may end in CR LF, and the end of the file is the end of a line.
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

    /// A byte order mark may stand at the front, but no part of one.
    fn skip_mark(&mut self) -> Result<(), Broken> {
        if self.bytes.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        } else if self.bytes.starts_with(b"\xef") {
            return Err(Broken);
        }
        Ok(())
    }

    /// A header, its bracket having been read: `[a]`, `[a.b]` or `[a "b"]`.
    fn header(&mut self) -> Result<Section, Broken> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                b']' if !name.is_empty() => return Ok(Section::new(name)),
                b'\n' => return Err(Broken),
                byte if is_space(byte) => break,
                byte if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return Err(Broken),
            }
        }
        name.push(b'.');
        loop {
            match self.next() {
                b'"' => break,
                b'\n' => return Err(Broken),
                byte if is_space(byte) => {}
                _ => return Err(Broken),
            }
        }
        loop {
            match self.next() {
                b'"' => break,
                b'\n' => return Err(Broken),
                b'\\' => match self.next() {
                    b'\n' => return Err(Broken),
                    byte => name.push(byte),
                },
                byte => name.push(byte),
            }
        }
        if self.next() == b']' { Ok(Section::new(name)) } else { Err(Broken) }
    }

    /// A key, whose first letter has been read, and its value.
    fn entry(&mut self, first: u8) -> Result<(Vec<u8>, Option<Vec<u8>>), Broken> {
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
            _ => Err(Broken),
        }
    }

    fn value(&mut self) -> Result<Vec<u8>, Broken> {
        let mut value = Vec::new();
        let mut quoted = false;
        // Where space began that is dropped if nothing follows it.
        let mut end = None;
        loop {
            match self.next() {
                b'\n' if quoted => return Err(Broken),
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

    /// What a backslash makes of the byte behind it: nothing, if that ends the line.
    fn escape(&mut self) -> Result<Option<u8>, Broken> {
        match self.next() {
            b'\n' => Ok(None),
            b't' => Ok(Some(b'\t')),
            b'b' => Ok(Some(8)),
            b'n' => Ok(Some(b'\n')),
            byte @ (b'\\' | b'"') => Ok(Some(byte)),
            _ => Err(Broken),
        }
    }
}

/// What git calls space, which is less than what C does.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}
