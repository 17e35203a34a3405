//! Words: what is known of an argument before the shell expands it.

use std::borrow::Cow;
use std::ops::Range;

/// One word of a command after quote removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its parts in order; adjacent parts form one word.
    pub parts: Vec<WordPart>,
    /// Where it is in the source. A word of code that is itself a word, as in `sh -c '…'`, has the range of that word.
    pub range: Range<usize>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPart {
    /// Text that the shell passes on as it is.
    Text {
        /// The text after quote removal.
        text: String,
        /// Whether it was quoted or escaped.
        quoted: bool,
    },
    /// Text that is known only when the shell runs.
    Dynamic {
        /// What produces the text.
        kind: DynamicKind,
        /// How it is written.
        source: String,
        /// Whether it is inside double quotes, so that its value is neither split into words nor matched with file names.
        quoted: bool,
    },
}

/// What produces text when the shell runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DynamicKind {
    /// `$x`, `${x}`, `$1`.
    Variable,
    /// `$(…)` or backticks.
    Substitution,
    /// `<(…)` or `>(…)`.
    ProcessSubstitution,
    /// `$((…))`, `$[…]` or a subscript.
    Arithmetic,
    /// `*`, `?` or `[…]`.
    Glob,
    /// `{a,b}` or `{1..9}`.
    Brace,
    /// `~` or `~name` at the beginning.
    Tilde,
    /// Arguments that a wrapper such as `xargs` adds.
    Appended,
}

impl Default for Word {
    fn default() -> Self {
        Self { parts: Vec::new(), range: 0..0 }
    }
}

impl Word {
    /// The text of the word, if all of it is known.
    pub fn literal(&self) -> Option<Cow<'_, str>> {
        match self.parts.as_slice() {
            [] => Some(Cow::Borrowed("")),
            [WordPart::Text { text, .. }] => Some(Cow::Borrowed(text)),
            parts => {
                let texts = parts.iter().map(|part| match part {
                    WordPart::Text { text, .. } => Some(text.as_str()),
                    WordPart::Dynamic { .. } => None,
                });
                texts.collect::<Option<String>>().map(Cow::Owned)
            }
        }
    }

    /// The text that the word certainly begins with.
    pub fn prefix(&self) -> String {
        let texts = self.parts.iter().map_while(|part| match part {
            WordPart::Text { text, .. } => Some(text.as_str()),
            WordPart::Dynamic { .. } => None,
        });
        texts.collect()
    }

    /// The word as text on one line: bare if that means the same to a shell, else quoted. Dynamic parts are as written.
    pub fn text(&self) -> String {
        let is_quoted = |part: &WordPart| match part {
            WordPart::Text { quoted, .. } | WordPart::Dynamic { quoted, .. } => *quoted,
        };
        let has_dynamic = self.parts.iter().any(|part| matches!(part, WordPart::Dynamic { .. }));
        if let Some(text) = self.literal() {
            return quote(&text);
        }
        if has_dynamic && self.parts.iter().all(is_quoted) {
            let inner = self.parts.iter().map(|part| match part {
                WordPart::Text { text, .. } => escape_in_double_quotes(text),
                WordPart::Dynamic { source, .. } => one_line(source),
            });
            return format!("\"{}\"", inner.collect::<String>());
        }
        let parts = self.parts.iter().map(|part| match part {
            WordPart::Text { text, quoted: false } => text.clone(),
            WordPart::Text { text, .. } => quote(text),
            WordPart::Dynamic { source, quoted: true, .. } => format!("\"{}\"", one_line(source)),
            WordPart::Dynamic { source, .. } => one_line(source),
        });
        parts.collect()
    }

    /// Whether known text in it would be a command substitution if it were evaluated again.
    pub(crate) fn has_code_text(&self) -> bool {
        self.parts.iter().any(|part| match part {
            WordPart::Text { text, .. } => text.contains("$(") || text.contains('`'),
            WordPart::Dynamic { .. } => false,
        })
    }

    /// Whether expanding the word cannot set a variable, evaluate text or connect: it has no other expansions than those of a
    /// variable by its name, of the user's own home, of file names, of braces and of commands.
    pub(crate) fn is_plain(&self) -> bool {
        self.parts.iter().all(|part| match part {
            WordPart::Text { .. } => true,
            WordPart::Dynamic { kind: DynamicKind::Variable, source, .. } => is_plain_variable(source),
            WordPart::Dynamic { kind: DynamicKind::Tilde, source, .. } => source == "~",
            WordPart::Dynamic { kind, .. } => *kind != DynamicKind::Arithmetic,
        })
    }

    /// Whether the shell may make an option, or several words, of it: what it begins with is not known, or it is split.
    pub(crate) fn may_be_option(&self) -> bool {
        let splits = self.parts.iter().any(|part| match part {
            WordPart::Text { .. } => false,
            WordPart::Dynamic { kind, quoted, .. } => {
                !quoted
                    && !matches!(
                        kind,
                        DynamicKind::Tilde | DynamicKind::Glob | DynamicKind::ProcessSubstitution
                    )
            }
        });
        splits
            || match self.parts.first() {
                None => false,
                Some(WordPart::Text { text, .. }) => text.starts_with('-'),
                Some(WordPart::Dynamic { kind, .. }) => {
                    !matches!(kind, DynamicKind::Tilde | DynamicKind::ProcessSubstitution)
                }
            }
    }

    /// Whether the word can become no word or several, so that the words after it have no fixed place.
    pub(crate) fn may_split(&self) -> bool {
        self.parts.iter().any(|part| match part {
            WordPart::Text { .. } => false,
            WordPart::Dynamic { kind: DynamicKind::Tilde | DynamicKind::ProcessSubstitution, .. } => false,
            // `"$@"` is the one quoted part that becomes several words.
            WordPart::Dynamic { source, quoted, .. } => !quoted || source.contains('@'),
        })
    }

    /// The rest of the word after `count` bytes of known text.
    pub(crate) fn without_prefix(&self, mut count: usize) -> Self {
        let mut parts = Vec::new();
        for part in &self.parts {
            match part {
                WordPart::Text { text, quoted } if count > 0 => {
                    let cut = count.min(text.len());
                    count -= cut;
                    let rest = text.get(cut..).unwrap_or_default();
                    if !rest.is_empty() {
                        parts.push(WordPart::Text { text: rest.to_owned(), quoted: *quoted });
                    }
                }
                part => parts.push(part.clone()),
            }
        }
        Self { parts, range: self.range.clone() }
    }
}

/// Whether an expansion is `$name`, `${name}`, or that of one parameter with a number or a sign.
fn is_plain_variable(source: &str) -> bool {
    let Some(name) = source.strip_prefix('$') else { return false };
    let name = name.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(name);
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
    is_name || matches!(source, "$?" | "$#" | "$$" | "$!" | "$-")
}

/// The last part of a path: the name under which a program is known.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Quotes text unless the shell would take it as one literal word without quotes.
fn quote(text: &str) -> String {
    let expands_braces = text.contains(',') || text.contains("..");
    let is_plain = |c: char| {
        c.is_alphanumeric() || "_-+=.,:/@%^".contains(c) || matches!(c, '{' | '}') && !expands_braces
    };
    if text.is_empty() {
        return "''".to_owned();
    }
    // A tilde means something at the beginning only.
    let is_bare = text.char_indices().all(|(at, c)| is_plain(c) || at > 0 && c == '~');
    if is_bare || ["[", "]", "[[", "]]", "!"].contains(&text) {
        return text.to_owned();
    }
    // The value of an option is quoted on its own, so that a rule can name the option.
    if text.starts_with('-')
        && let Some((name, value)) = text.split_once('=')
        && name.chars().all(is_plain)
    {
        return format!("{name}={}", quote(value));
    }
    if text.chars().any(char::is_control) {
        let escaped: String = text
            .chars()
            .map(|c| match c {
                '\n' => "\\n".to_owned(),
                '\t' => "\\t".to_owned(),
                '\'' => "\\'".to_owned(),
                '\\' => "\\\\".to_owned(),
                c if c.is_ascii_control() => format!("\\x{:02x}", u32::from(c)),
                c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
                c => c.to_string(),
            })
            .collect();
        return format!("$'{escaped}'");
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn escape_in_double_quotes(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            escaped.push('\\');
        }
        escaped.push(if c == '\n' { ' ' } else { c });
    }
    escaped
}

/// The source of a dynamic part without line breaks.
fn one_line(source: &str) -> String {
    if source.contains(['\n', '\r']) {
        source.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        source.to_owned()
    }
}
