//! The tools that rules may name, and what a rule may say of each.

use std::collections::BTreeMap;

use haft_tool::{EffectKind, close_names};

use crate::rule::{Behavior, Specifier};

/// The tools that rules may name: those that are offered, and others that are known and not offered.
///
/// Tools of MCP servers need not be here: their names contain `__`, and they are known only once their server has started.
#[derive(Debug, Clone)]
pub struct RuleTools {
    tools: BTreeMap<String, Vec<EffectKind>>,
    /// The names of offered tools, and whether they are matched in any case.
    offered: BTreeMap<String, bool>,
    /// Other names of offered tools.
    aliases: BTreeMap<String, String>,
}

/// With a specifier these speak of every tool that reads files, writes them, runs commands or reaches hosts.
pub(crate) const COVERING: [(&str, &[EffectKind]); 4] = [
    ("Read", &[EffectKind::Read]),
    ("Edit", &[EffectKind::Write]),
    ("Bash", &[EffectKind::Run, EffectKind::Unsandboxed]),
    ("WebFetch", &[EffectKind::Reach]),
];

/// Tools that existing settings name, and what the same is called now.
const FORMER_NAMES: [(&str, &str); 1] = [("MultiEdit", "Edit")];

impl Default for RuleTools {
    /// The names that rules understand whatever is offered.
    fn default() -> Self {
        let covering = COVERING.into_iter().map(|(name, kinds)| (name.to_owned(), kinds.to_vec()));
        Self { tools: covering.collect(), offered: BTreeMap::new(), aliases: BTreeMap::new() }
    }
}

impl RuleTools {
    /// Adds a tool that is not offered and may have effects of these kinds. Two tools of one name understand what either
    /// does.
    pub fn add(&mut self, name: impl Into<String>, kinds: &[EffectKind]) {
        self.tools.entry(name.into()).or_default().extend_from_slice(kinds);
    }

    /// Adds a tool that is offered; `any_case` says whether callers may write its name in any case.
    pub fn offer(&mut self, name: impl Into<String>, kinds: &[EffectKind], any_case: bool) {
        let name = name.into();
        self.add(name.clone(), kinds);
        self.offered.insert(name, any_case);
    }

    /// Lets rules name the offered tool `name` by `alias`.
    pub fn add_alias(&mut self, alias: impl Into<String>, name: impl Into<String>) {
        self.aliases.insert(alias.into(), name.into());
    }

    /// The name of the offered tool that a rule means, else the name as written. What denies or asks may mean too much, so
    /// there the case of letters does not matter.
    pub(crate) fn canonical<'a>(&'a self, name: &'a str, behavior: Behavior, has_specifier: bool) -> &'a str {
        if self.offered.contains_key(name) {
            return name;
        }
        let former = FORMER_NAMES.iter().find(|(former, _)| *former == name);
        let name = former.map_or(name, |(_, current)| current);
        if has_specifier && COVERING.iter().any(|(covering, _)| *covering == name) {
            return name;
        }
        let same = |(offered, any_case): &(&String, &bool)| {
            (**any_case || behavior != Behavior::Allow) && offered.eq_ignore_ascii_case(name)
        };
        let in_any_case = || self.offered.iter().find(same).map(|(offered, _)| offered);
        self.aliases.get(name).or_else(in_any_case).map_or(name, String::as_str)
    }

    /// Why no tool has this name, and what may be meant; `None` if one has, or may have.
    pub(crate) fn unknown(&self, name: &str) -> Option<String> {
        if name.contains("__") || name.ends_with('*') || self.tools.contains_key(name) {
            return None;
        }
        let near = close_names(name, self.tools.keys().map(String::as_str));
        Some(match near.as_slice() {
            [] => "See `haft tools` for the names".to_owned(),
            near => format!("Did you mean {}?", near.join(" or ")),
        })
    }

    /// What is wrong with a specifier of `tool`, and what is understood. A tool that is not known is judged by
    /// [`RuleTools::unknown`].
    pub(crate) fn check(&self, tool: &str, specifier: &Specifier) -> Result<(), String> {
        use EffectKind::{Configure, Reach, Read, Run, Send, Spawn, Undo, Unsandboxed, Write};
        if tool.contains("__") {
            return Err(format!(
                "has a specifier, which tools of MCP servers do not understand. Write {tool} for every call of it"
            ));
        }
        let Some(kinds) = self.tools.get(tool) else { return Ok(()) };
        let has = |wanted: &[EffectKind]| wanted.iter().any(|kind| kinds.contains(kind));
        let understood = match specifier {
            Specifier::Host(..) => has(&[Reach]),
            Specifier::Unsandboxed => has(&[Unsandboxed]),
            Specifier::Path(_) => has(&[Read, Write]),
            Specifier::Either(..) => has(&[Read, Write, Run, Send, Spawn, Configure, Undo]),
            // The text is no path pattern.
            Specifier::Command(_) => has(&[Run, Send, Spawn, Configure, Undo]),
        };
        if understood {
            return Ok(());
        }
        let text = match specifier {
            Specifier::Either(_, text) | Specifier::Command(text) => &text.name,
            _ => "",
        };
        let forms: Vec<String> = [
            (&[Run][..], format!("{tool}(COMMAND)")),
            (&[Unsandboxed], format!("{tool}(unsandboxed)")),
            (&[Read, Write], format!("{tool}(PATH)")),
            (&[Reach], format!("{tool}(domain:{})", host_in(text))),
            (&[Send], format!("{tool}(CHANNEL)")),
            (&[Spawn], format!("{tool}(AGENT)")),
            (&[Configure], format!("{tool}(SETTING)")),
        ]
        .into_iter()
        .filter(|(wanted, _)| has(wanted))
        .map(|(_, form)| form)
        .chain([tool.to_owned()])
        .collect();
        Err(format!("has a specifier that {tool} does not understand. Understood: {}", forms.join(", ")))
    }
}

/// The host of a URL or of the beginning of one, for a suggestion.
fn host_in(text: &str) -> &str {
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = text.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() { "HOST" } else { host }
}
