//! Finding a text, whatever its case, and the words around it.

use haft_tool::ToolError;
use regex::{Regex, RegexBuilder};

/// Characters of a snippet before and after what was found.
const MAX_CONTEXT_CHARS: usize = 60;

/// A text that is searched for.
pub(super) struct TextMatcher(Regex);

impl TextMatcher {
    pub(super) fn new(text: &str) -> Result<Self, ToolError> {
        if text.trim().is_empty() {
            return Err(ToolError::invalid_arguments("there is nothing to search for. Give a text."));
        }
        let built = RegexBuilder::new(&regex::escape(text)).case_insensitive(true).build();
        let built = built
            .map_err(|error| ToolError::invalid_arguments(format!("this cannot be searched for: {error}")))?;
        Ok(Self(built))
    }

    /// What was found with some characters around it, on one line; `None` if the text is not there.
    pub(super) fn snippet(&self, text: &str) -> Option<String> {
        let found = self.0.find(text)?;
        let (before, after) = (text.get(..found.start())?, text.get(found.end()..)?);
        let begin = before.char_indices().rev().nth(MAX_CONTEXT_CHARS - 1).map_or(0, |(at, _)| at);
        let end = after.char_indices().nth(MAX_CONTEXT_CHARS).map_or(after.len(), |(at, _)| at);
        let mark = |is_cut: bool| if is_cut { "…" } else { "" };
        let part = format!("{}{}{}", before.get(begin..)?, found.as_str(), after.get(..end)?);
        let line = part.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(format!("{}{line}{}", mark(begin > 0), mark(end < after.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_are_short_and_on_one_line() {
        let matcher = TextMatcher::new("tEA").unwrap();
        assert_eq!(matcher.snippet("Make\n\n tea,\tplease").as_deref(), Some("Make tea, please"));
        assert_eq!(matcher.snippet("Make coffee"), None);
        let long = format!("{}tea{}", "é".repeat(100), "日".repeat(100));
        let expected = format!("…{}tea{}…", "é".repeat(MAX_CONTEXT_CHARS), "日".repeat(MAX_CONTEXT_CHARS));
        assert_eq!(matcher.snippet(&long), Some(expected));
        assert!(TextMatcher::new(" ").is_err());
        assert_eq!(TextMatcher::new("a.b").unwrap().snippet("axb"), None);
    }
}
