//! What is generated: files in many encodings, edits of them, and files that are not text.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::encodings::{EUC_KR, GBK, KOI8_R, SHIFT_JIS, WINDOWS_1252, Word};

/// How letters become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Utf8,
    Utf16 {
        little: bool,
    },
    /// As in the tables; a letter that is not ASCII has so many bytes.
    Table {
        width: usize,
    },
}

#[derive(Debug)]
pub(super) struct Encoding {
    pub(super) name: &'static str,
    /// The bytes that say what follows.
    pub(super) mark: &'static [u8],
    form: Form,
    words: &'static [&'static [Word]],
    /// Whether nothing in the file says what its letters are, so that a reader has to guess.
    pub(super) guessed: bool,
    /// What a right guess is called; KOI8-U only adds letters to KOI8-R.
    called: &'static [&'static str],
}

const EVERYTHING: &[&[Word]] = &[WINDOWS_1252, SHIFT_JIS, GBK, EUC_KR, KOI8_R];

pub(super) const ENCODINGS: [Encoding; 11] = [
    sure("UTF-8", b"", Form::Utf8),
    sure("UTF-8 with a mark", b"\xef\xbb\xbf", Form::Utf8),
    sure("UTF-16LE with a mark", b"\xff\xfe", Form::Utf16 { little: true }),
    sure("UTF-16BE with a mark", b"\xfe\xff", Form::Utf16 { little: false }),
    guessed("UTF-16LE", Form::Utf16 { little: true }, &[WINDOWS_1252], &["UTF-16LE"]),
    guessed("UTF-16BE", Form::Utf16 { little: false }, &[WINDOWS_1252], &["UTF-16BE"]),
    guessed("windows-1252", Form::Table { width: 1 }, &[WINDOWS_1252], &["windows-1252"]),
    guessed("Shift_JIS", Form::Table { width: 2 }, &[SHIFT_JIS], &["Shift_JIS"]),
    guessed("GBK", Form::Table { width: 2 }, &[GBK], &["GBK", "gb18030"]),
    guessed("EUC-KR", Form::Table { width: 2 }, &[EUC_KR], &["EUC-KR"]),
    guessed("KOI8-R", Form::Table { width: 1 }, &[KOI8_R], &["KOI8-R", "KOI8-U"]),
];

const fn sure(name: &'static str, mark: &'static [u8], form: Form) -> Encoding {
    Encoding { name, mark, form, words: EVERYTHING, guessed: false, called: &[] }
}

const fn guessed(
    name: &'static str,
    form: Form,
    words: &'static [&'static [Word]],
    called: &'static [&'static str],
) -> Encoding {
    Encoding { name, mark: b"", form, words, guessed: true, called }
}

impl Encoding {
    /// The bytes of `text` without the mark; nothing if this encoding does not have one of its letters.
    pub(super) fn encode(&self, text: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for letter in text.chars() {
            match self.form {
                Form::Utf8 => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
                Form::Utf16 { little } => bytes.extend(
                    letter
                        .encode_utf16(&mut [0; 2])
                        .iter()
                        .flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }),
                ),
                Form::Table { .. } if letter.is_ascii() => bytes.push(u8::try_from(letter).ok()?),
                Form::Table { width } => bytes.extend_from_slice(self.looked_up(letter, width)?),
            }
        }
        Some(bytes)
    }

    fn looked_up(&self, wanted: char, width: usize) -> Option<&'static [u8]> {
        self.words.iter().copied().flatten().find_map(|(text, bytes)| {
            let mut at = 0;
            text.chars().find_map(|letter| {
                let end = at + if letter.is_ascii() { 1 } else { width };
                let found = (letter == wanted).then(|| &bytes[at..end]);
                at = end;
                found
            })
        })
    }

    fn word(&self, index: Index) -> &'static str {
        let all: Vec<&Word> = self.words.iter().copied().flatten().collect();
        index.get(&all).0
    }

    /// Whether a result says that the file was read in this encoding.
    pub(super) fn is_named_in(&self, said: &str) -> bool {
        self.called.iter().any(|name| said.contains(&format!("the file is {name}, and stays so")))
    }
}

/// A text file.
#[derive(Debug, Clone)]
pub(super) struct TextFile {
    encoding: usize,
    pub(super) text: String,
}

impl TextFile {
    fn new(encoding: usize, text: String) -> Self {
        let file = Self { encoding, text };
        // What has no mark and reads as UTF-8 is UTF-8: there is no way to tell that it was meant otherwise.
        if !file.encoding().mark.is_empty() {
            return file;
        }
        match String::from_utf8(file.bytes()) {
            Ok(text) if !text.contains('\0') => Self { encoding: 0, text },
            _ => file,
        }
    }

    pub(super) fn encoding(&self) -> &'static Encoding {
        &ENCODINGS[self.encoding]
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        [self.encoding().mark, &self.encoding().encode(&self.text).unwrap()].concat()
    }
}

/// What texts are made of.
#[derive(Debug, Clone)]
enum Piece {
    /// A word of the encoding, with a space behind it or not.
    Own(Index, bool),
    Ascii(&'static str),
    Tab,
    /// A line end; the number chooses one where they are mixed.
    Break(usize),
    /// What only Unicode has.
    Foreign,
}

#[derive(Debug, Clone, Copy)]
enum Breaks {
    Lf,
    Crlf,
    Cr,
    Mixed,
}

fn text(pieces: &[Piece], encoding: &Encoding, breaks: Breaks) -> String {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Own(index, spaced) => {
                text.push_str(encoding.word(*index));
                text.push_str(if *spaced { " " } else { "" });
            }
            Piece::Ascii(word) => text.push_str(word),
            Piece::Tab => text.push('\t'),
            Piece::Foreign => text.push('🦀'),
            Piece::Break(number) => text.push_str(match breaks {
                Breaks::Lf => "\n",
                Breaks::Crlf => "\r\n",
                Breaks::Cr => "\r",
                Breaks::Mixed => ["\n", "\r\n", "\r"][number % 3],
            }),
        }
    }
    text
}

fn piece() -> impl Strategy<Value = Piece> {
    let ascii = prop::sample::select(vec![
        "alpha ",
        "fn main() {",
        "x",
        "x",
        "  ",
        "a.b",
        "\\",
        "$1",
        "{}",
        "end;",
        "1 ",
    ]);
    prop_oneof![
        6 => (any::<Index>(), prop::bool::weighted(0.7)).prop_map(|(index, spaced)| Piece::Own(index, spaced)),
        4 => ascii.prop_map(Piece::Ascii),
        1 => Just(Piece::Tab),
        4 => (0_usize..3).prop_map(Piece::Break),
    ]
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    prop_oneof![2 => vec(piece(), 0..4), 7 => vec(piece(), 4..40), 1 => vec(piece(), 100..160)]
}

fn breaks() -> impl Strategy<Value = Breaks> {
    prop::sample::select(vec![Breaks::Lf, Breaks::Crlf, Breaks::Cr, Breaks::Mixed])
}

fn text_file() -> impl Strategy<Value = TextFile> {
    (0..ENCODINGS.len(), pieces(), breaks(), any::<bool>()).prop_map(
        |(encoding, mut pieces, breaks, ends)| {
            if ends {
                pieces.push(Piece::Break(0));
            }
            TextFile::new(encoding, text(&pieces, &ENCODINGS[encoding], breaks))
        },
    )
}

/// A file and an edit of it.
#[derive(Debug, Clone)]
pub(super) struct EditCase {
    pub(super) file: TextFile,
    pub(super) old: String,
    pub(super) new: String,
    pub(super) replace_all: bool,
}

/// How the text to replace is chosen.
#[derive(Debug, Clone, Copy)]
enum Choice {
    AsItIs,
    /// With plain line ends, as a model writes them that was shown the file.
    Unix,
    Absent,
}

pub(super) fn edit_case() -> impl Strategy<Value = EditCase> {
    let choice = prop_oneof![6 => Just(Choice::AsItIs), 3 => Just(Choice::Unix), 1 => Just(Choice::Absent)];
    let replacement = vec(prop_oneof![12 => piece(), 1 => Just(Piece::Foreign)], 0..5);
    let old = (any::<Index>(), 1_usize..14, choice);
    (text_file(), old, replacement, breaks(), any::<bool>()).prop_map(
        |(file, (start, length, choice), new, breaks, replace_all)| {
            let letters: Vec<char> = file.text.chars().collect();
            let start = if letters.is_empty() { 0 } else { start.index(letters.len()) };
            let mut old: String = letters[start..].iter().take(length).collect();
            match choice {
                Choice::AsItIs => {}
                Choice::Unix => old = old.replace("\r\n", "\n"),
                Choice::Absent => old.push_str("~nowhere~"),
            }
            if old.is_empty() {
                old.push('~');
            }
            let new = text(&new, file.encoding(), breaks);
            EditCase { file, old, new, replace_all }
        },
    )
}

/// A file, and the text that shall replace its own.
pub(super) fn write_case() -> impl Strategy<Value = (TextFile, String)> {
    let content = (pieces(), breaks()).prop_map(|(pieces, breaks)| text(&pieces, &ENCODINGS[0], breaks));
    (text_file(), content)
}

/// Bytes that are not text, and a text that can be found among them.
pub(super) fn binary() -> impl Strategy<Value = (Vec<u8>, String)> {
    let noise = || vec(any::<u8>(), 8..200);
    let header = prop::sample::select(vec![
        &b"\x7fELF\x02\x01\x01\0\0"[..],
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"PK\x03\x04\x14\0",
    ]);
    let bytes = prop_oneof![
        // Programs, pictures, archives.
        (header, noise()).prop_map(|(header, noise)| [header, &noise, b" needle \0\0\0", &noise].concat()),
        // Text with a zero in it.
        pieces().prop_map(|pieces| [
            text(&pieces, &ENCODINGS[0], Breaks::Lf).as_bytes(),
            b" needle \0 end\n"
        ]
        .concat()),
        // Small numbers of two bytes each.
        vec(1_u8..32, 8..100).prop_map(|numbers| {
            let needle = b"needle".iter();
            numbers.iter().chain(needle).chain(&numbers).flat_map(|number| [*number, 0]).collect()
        }),
        // Marked as UTF-16, with half a letter at the end or half a pair in the middle.
        pieces().prop_map(|pieces| {
            let marked = &ENCODINGS[2];
            let text = text(&pieces, marked, Breaks::Lf) + "needle";
            [marked.mark, &marked.encode(&text).unwrap(), b"x"].concat()
        }),
        pieces().prop_map(|pieces| {
            let marked = &ENCODINGS[3];
            let text = marked.encode(&text(&pieces, marked, Breaks::Lf)).unwrap();
            [marked.mark, &text, b"\xd8\x00", &marked.encode("needle").unwrap()].concat()
        }),
        // Marked as UTF-8 without being it.
        noise().prop_map(|noise| [b"\xef\xbb\xbfneedle\xff", &noise[..]].concat()),
    ];
    bytes.prop_map(|bytes| (bytes, "needle".to_owned()))
}
