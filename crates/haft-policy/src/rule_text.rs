//! A rule as it is written: its text, and examples of what it is meant to match.

use serde::{Deserialize, Serialize};

/// A rule as it is written in settings: a text, or a table with a text and examples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RuleForm", into = "RuleForm")]
pub struct RuleText {
    /// The rule.
    pub text: String,
    /// What it must match: commands, paths, hosts, as its specifier has them.
    pub matches: Vec<String>,
    /// What it must not match.
    pub not_matches: Vec<String>,
}

/// The two forms in settings.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum RuleForm {
    Text(String),
    WithExamples(RuleWithExamples),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleWithExamples {
    rule: String,
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    matches: Vec<String>,
    #[serde(default, rename = "not_match", skip_serializing_if = "Vec::is_empty")]
    not_matches: Vec<String>,
}

impl From<RuleForm> for RuleText {
    fn from(written: RuleForm) -> Self {
        match written {
            RuleForm::Text(text) => text.into(),
            RuleForm::WithExamples(RuleWithExamples { rule, matches, not_matches }) => {
                Self { text: rule, matches, not_matches }
            }
        }
    }
}

impl From<RuleText> for RuleForm {
    fn from(rule: RuleText) -> Self {
        let RuleText { text, matches, not_matches } = rule;
        if matches.is_empty() && not_matches.is_empty() {
            return Self::Text(text);
        }
        Self::WithExamples(RuleWithExamples { rule: text, matches, not_matches })
    }
}

impl From<String> for RuleText {
    fn from(text: String) -> Self {
        Self { text, matches: Vec::new(), not_matches: Vec::new() }
    }
}

impl From<&String> for RuleText {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<&str> for RuleText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
