//! A JSON document with the line and column of every value and name.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::error::SettingsError;

/// Largest file that is parsed. Real ones have a few KiB.
pub const MAX_SETTINGS_BYTES: usize = 4 << 20;

/// What Claude Code accepts: JSON without extensions.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_trailing_commas: false,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Comments and trailing commas hold no values, so accepting them loses none.
const TOLERANT: ParseOptions = ParseOptions { allow_comments: true, allow_trailing_commas: true, ..STRICT };

/// A value and where it begins. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its line.
    pub line: usize,
    /// Its column.
    pub column: usize,
}

impl<T> Located<T> {
    /// The same place with another value.
    pub fn with<U>(&self, value: U) -> Located<U> {
        Located { value, line: self.line, column: self.column }
    }
}

/// A JSON value whose parts have their places.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Located<Tree>>),
    Object(Vec<Member>),
}

/// One member of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member {
    pub(super) name: Located<String>,
    pub(super) value: Located<Tree>,
}

impl Tree {
    /// What it is, for messages.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// The document, and the first place where it is not strict JSON. A blank file is an empty object.
pub(super) fn parse(bytes: &[u8]) -> Result<(Located<Tree>, Option<Located<String>>), SettingsError> {
    if bytes.len() > MAX_SETTINGS_BYTES {
        let why = format!("the file is larger than {} MiB", MAX_SETTINGS_BYTES >> 20);
        return Err(SettingsError::new(bytes, 1, 1, why));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok());
        let at = Cursor::new(valid.unwrap_or_default()).seek(usize::MAX);
        SettingsError::new(bytes, at.0, at.1, "it is not UTF-8".to_owned())
    })?;
    let read = |options| parse_to_ast(text, &CollectOptions::default(), options);
    let located = |error: &jsonc_parser::errors::ParseError| {
        let (line, column) = Cursor::new(text).seek(error.range().start);
        Located { value: error.kind().to_string(), line, column }
    };
    let (parsed, not_strict) = match read(&STRICT) {
        Ok(parsed) => (parsed, None),
        Err(strict) => match read(&TOLERANT) {
            Ok(parsed) => (parsed, Some(located(&strict))),
            Err(error) => {
                let Located { value, line, column } = located(&error);
                return Err(SettingsError::new(bytes, line, column, value));
            }
        },
    };
    let Some(value) = parsed.value else {
        return Ok((Located { value: Tree::Object(Vec::new()), line: 1, column: 1 }, not_strict));
    };
    let tree = Converter { cursor: Cursor::new(text) }.convert(value).map_err(|twice| {
        let why = format!("the key {:?} occurs twice in this object", twice.value);
        SettingsError::new(bytes, twice.line, twice.column, why)
    })?;
    Ok((tree, not_strict))
}

/// Makes the tree. The parser bounds the depth of the recursion.
struct Converter<'a> {
    cursor: Cursor<'a>,
}

impl Converter<'_> {
    /// Fails with a name that an object has twice: JSON parsers keep one of the two, which can lose a deny rule.
    fn convert(&mut self, value: ast::Value<'_>) -> Result<Located<Tree>, Located<String>> {
        let (line, column) = self.cursor.seek(value.range().start);
        let value = match value {
            ast::Value::NullKeyword(_) => Tree::Null,
            ast::Value::BooleanLit(literal) => Tree::Bool(literal.value),
            ast::Value::NumberLit(literal) => Tree::Number(literal.value.parse().unwrap_or(f64::NAN)),
            ast::Value::StringLit(literal) => Tree::Text(literal.value.into_owned()),
            ast::Value::Array(list) => {
                let elements = list.elements.into_iter().map(|element| self.convert(element));
                Tree::List(elements.collect::<Result<_, _>>()?)
            }
            ast::Value::Object(object) => self.members(object)?,
        };
        Ok(Located { value, line, column })
    }

    fn members(&mut self, object: ast::Object<'_>) -> Result<Tree, Located<String>> {
        let mut members = Vec::with_capacity(object.properties.len());
        let mut names = std::collections::HashSet::new();
        for property in object.properties {
            let (line, column) = self.cursor.seek(property.range.start);
            let name = Located { value: property.name.into_string(), line, column };
            if !names.insert(name.value.clone()) {
                return Err(name);
            }
            members.push(Member { name, value: self.convert(property.value)? });
        }
        Ok(Tree::Object(members))
    }
}

/// Lines and columns of byte offsets. Going forward costs only the bytes in between, so that one long line is not
/// counted again for each of its values.
struct Cursor<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
    column: usize,
}

impl<'a> Cursor<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text, offset: 0, line: 1, column: 1 }
    }

    fn seek(&mut self, offset: usize) -> (usize, usize) {
        if offset < self.offset {
            *self = Self::new(self.text);
        }
        for char in self.text.get(self.offset..).unwrap_or_default().chars() {
            if self.offset >= offset {
                break;
            }
            self.offset += char.len_utf8();
            (self.line, self.column) =
                if char == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
        }
        (self.line, self.column)
    }
}
