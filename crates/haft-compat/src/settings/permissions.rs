//! `permissions`: rules, the mode and directories.

use std::str::FromStr;

use super::document::{Located, Member, Tree};
use super::object::{ObjectReader, Restricts, expected};

/// `permissions`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct PermissionSettings {
    /// Rules that allow.
    pub allow: Vec<Located<SettingsRule>>,
    /// Rules that ask.
    pub ask: Vec<Located<SettingsRule>>,
    /// Rules that deny.
    pub deny: Vec<Located<SettingsRule>>,
    /// `defaultMode`.
    pub default_mode: Option<Located<DefaultMode>>,
    /// `additionalDirectories`.
    pub additional_directories: Vec<Located<String>>,
    /// `disableBypassPermissionsMode`, set to `disable`.
    pub disable_bypass_permissions_mode: Option<Located<bool>>,
    /// `blockReadsOutsideWorkingDirectories`.
    pub block_reads_outside_working_directories: Option<Located<bool>>,
    /// `blockWritesOutsideWorkingDirectories`.
    pub block_writes_outside_working_directories: Option<Located<bool>>,
    /// `denyInsteadOfPrompting`.
    pub deny_instead_of_prompting: Option<Located<bool>>,
}

/// A rule in Claude Code's syntax. Haft also accepts an object with calls that the rule must and must not match, so that a
/// rule that does not do what it says is found when settings are checked: `{"rule": "Bash(git push *)", "match": ["git push
/// origin"], "not_match": ["git pull"]}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingsRule {
    /// `Tool` or `Tool(specifier)`.
    pub rule: String,
    /// What it must match.
    pub matches: Vec<Located<String>>,
    /// What it must not match.
    pub does_not_match: Vec<Located<String>>,
}

impl SettingsRule {
    /// A rule without examples.
    pub fn new(rule: String) -> Self {
        Self { rule, ..Self::default() }
    }
}

/// `permissions.defaultMode`, by Claude Code's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefaultMode {
    /// `default`, also written `manual`.
    Default,
    /// `acceptEdits`.
    AcceptEdits,
    /// `bypassPermissions`.
    BypassPermissions,
    /// `plan`.
    Plan,
    /// `dontAsk`.
    DontAsk,
    /// `auto`: a classifier decides.
    Auto,
    /// `scoped`: Haft's own mode.
    Scoped,
}

impl FromStr for DefaultMode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name {
            "default" | "manual" => Self::Default,
            "acceptEdits" => Self::AcceptEdits,
            "bypassPermissions" => Self::BypassPermissions,
            "plan" => Self::Plan,
            "dontAsk" => Self::DontAsk,
            "auto" => Self::Auto,
            "scoped" => Self::Scoped,
            _ => return Err(format!("there is no mode {name:?}")),
        })
    }
}

/// The one value of `disableBypassPermissionsMode`. `true` is accepted, because that is what its name suggests.
fn is_disabled(value: &Tree) -> Option<bool> {
    match value {
        Tree::Text(text) if text == "disable" => Some(true),
        Tree::Bool(flag) => Some(*flag),
        _ => None,
    }
}

impl PermissionSettings {
    pub(super) fn read(mut reader: ObjectReader<'_>) -> Self {
        let allow = rules(&mut reader, "allow", Restricts::No);
        let ask = rules(&mut reader, "ask", Restricts::Yes);
        let deny = rules(&mut reader, "deny", Restricts::Yes);
        let name = "disableBypassPermissionsMode";
        let disable_bypass_permissions_mode = reader.take(name).and_then(|value| {
            let disabled = is_disabled(&value.value);
            if disabled.is_none() {
                reader.problem(name, &value, Restricts::Yes, "must be \"disable\"".to_owned());
            }
            disabled.map(|flag| value.with(flag))
        });
        let settings = Self {
            allow,
            ask,
            deny,
            default_mode: reader.word("defaultMode", Restricts::Yes),
            additional_directories: reader.texts("additionalDirectories", Restricts::No).unwrap_or_default(),
            disable_bypass_permissions_mode,
            block_reads_outside_working_directories: reader
                .bool("blockReadsOutsideWorkingDirectories", Restricts::Yes),
            block_writes_outside_working_directories: reader
                .bool("blockWritesOutsideWorkingDirectories", Restricts::Yes),
            deny_instead_of_prompting: reader.bool("denyInsteadOfPrompting", Restricts::Yes),
        };
        reader.finish();
        settings
    }
}

/// A list of rules, as strings or as objects.
fn rules(reader: &mut ObjectReader<'_>, name: &str, restricts: Restricts) -> Vec<Located<SettingsRule>> {
    let mut rules = Vec::new();
    for element in reader.list(name, restricts).unwrap_or_default() {
        let place = element.with(());
        match element.value {
            Tree::Text(rule) => rules.push(place.with(SettingsRule { rule, ..SettingsRule::default() })),
            Tree::Object(members) => {
                rules.extend(rule_with_examples(reader, name, &place, members, restricts));
            }
            ref other => reader.problem(name, &element, restricts, expected("a rule", other)),
        }
    }
    rules
}

/// A rule with examples. Without its `rule` it is a problem; bad examples are problems of their own.
fn rule_with_examples(
    reader: &mut ObjectReader<'_>,
    name: &str,
    place: &Located<()>,
    members: Vec<Member>,
    restricts: Restricts,
) -> Option<Located<SettingsRule>> {
    let key = reader.key(name);
    let object = place.with(Tree::Object(members));
    let mut object = ObjectReader::new(&key, object, restricts, reader.findings());
    let rule = object.text("rule", restricts);
    let matches = object.texts("match", Restricts::No).unwrap_or_default();
    let does_not_match = object.texts("not_match", Restricts::No).unwrap_or_default();
    object.finish();
    let Some(rule) = rule else {
        reader.problem(name, place, restricts, "the rule's object has no text `rule`".to_owned());
        return None;
    };
    Some(rule.with(SettingsRule { rule: rule.value.clone(), matches, does_not_match }))
}
