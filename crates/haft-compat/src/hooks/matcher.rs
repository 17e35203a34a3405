//! Which subjects a group of hooks is for: tools, or what else its event names.

use regex::bytes::{Regex, RegexBuilder};

use super::HookEvent;

/// Memory that the compiled form of one expression may take.
const MAX_EXPRESSION_BYTES: usize = 1 << 20;

/// The `matcher` of a group of hooks, as Claude Code reads it:
///
/// - Empty and `*` match everything.
/// - Letters, digits, `_` and `|` are names, one of which must be the subject: `Write|Edit`. For events whose subject is
///   from a list, such as tools, `,` also separates names, and blanks and `-` are allowed.
/// - All else is a regular expression, which is searched in the subject: `^` and `$` have to be written. `Notebook.*` also
///   matches `MyNotebookTool`.
///
/// An event without a subject, such as `Stop`, matches always.
#[derive(Debug, Clone)]
pub struct HookMatcher {
    text: String,
    pattern: Pattern,
}

#[derive(Debug, Clone)]
enum Pattern {
    Everything,
    Names(Vec<String>),
    Expression(Regex),
    Unreadable(String),
}

impl PartialEq for HookMatcher {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl HookMatcher {
    /// Reads a matcher of a group for `event`.
    pub fn new(text: &str, event: &HookEvent) -> Self {
        Self { text: text.to_owned(), pattern: pattern(text, event) }
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why it is not understood. It then matches everything, so that a guard runs too often instead of never.
    pub fn unreadable(&self) -> Option<&str> {
        match &self.pattern {
            Pattern::Unreadable(why) => Some(why),
            _ => None,
        }
    }

    /// Whether hooks for this subject run. `subjects` has all names of it, such as a tool's name and its former ones; it
    /// is empty if the event has none.
    pub fn matches(&self, subjects: &[&str]) -> bool {
        match &self.pattern {
            Pattern::Everything | Pattern::Unreadable(_) => true,
            _ if subjects.is_empty() => true,
            Pattern::Names(names) => names.iter().any(|name| subjects.iter().any(|subject| subject == name)),
            Pattern::Expression(expression) => {
                subjects.iter().any(|subject| expression.is_match(subject.as_bytes()))
            }
        }
    }
}

fn pattern(text: &str, event: &HookEvent) -> Pattern {
    if text.is_empty() || text == "*" {
        return Pattern::Everything;
    }
    let is_long = event.has_long_lists();
    let of_names =
        |char: char| char.is_ascii_alphanumeric() || "_|".contains(char) || is_long && ", -".contains(char);
    if text.chars().all(of_names) {
        let names = text.split(|char| char == '|' || is_long && char == ',').map(str::trim);
        return Pattern::Names(names.filter(|name| !name.is_empty()).map(str::to_owned).collect());
    }
    // ASCII classes, as in JavaScript without the flag `u`.
    match RegexBuilder::new(text).unicode(false).size_limit(MAX_EXPRESSION_BYTES).build() {
        Ok(expression) => Pattern::Expression(expression),
        Err(error) => {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
            Pattern::Unreadable(format!(
                "the matcher {text:?} is no regular expression that Haft knows: {why}"
            ))
        }
    }
}
