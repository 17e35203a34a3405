//! Rules in Claude's words: `Tool` or `Tool(specifier)`, each with its origin.

use std::path::Path;

use haft_tool::net::{Authority, Domains};
use haft_tool::{Effect, ToolError};

use crate::command::{CommandPattern, EffectView};
use crate::path_pattern::{BareName, PathPattern};
use crate::rule_tools::RuleTools;

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Behavior {
    /// Run it.
    Allow,
    /// Ask first.
    Ask,
    /// Never.
    Deny,
}

impl Behavior {
    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    pub(crate) const fn verb(self) -> &'static str {
        match self {
            Self::Allow => "allows",
            Self::Ask => "asks about",
            Self::Deny => "denies",
        }
    }

    /// What decides where rules disagree.
    pub(crate) const fn stronger(self) -> &'static [Self] {
        match self {
            Self::Allow => &[Self::Deny, Self::Ask],
            Self::Ask => &[Self::Deny],
            Self::Deny => &[],
        }
    }
}

/// One rule and its origin.
#[derive(Debug, Clone)]
pub struct Rule {
    behavior: Behavior,
    tool: String,
    specifier: Option<Specifier>,
    text: String,
    origin: String,
    /// Whether the dialect made it for a file of its own; it opens the path and leaves the decision to the mode.
    of_dialect: bool,
}

/// What is done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathUse {
    Read,
    Write,
}

#[derive(Debug, Clone)]
pub(crate) enum Specifier {
    Path(PathPattern),
    /// What a tool of any dialect touches, paths or commands: the effect says which is meant.
    Either(PathPattern, CommandOrName),
    Command(CommandOrName),
    /// The hosts, and how a list of hosts writes them.
    Host(Domains, Vec<String>),
    /// `Bash(unsandboxed)`: commands without the sandbox.
    Unsandboxed,
}

/// A command, or the name of a channel, an agent or a setting.
#[derive(Debug, Clone)]
pub(crate) struct CommandOrName {
    pub(crate) name: String,
    pub(crate) command: CommandPattern,
}

/// Tools whose specifier is a path.
const READERS: [&str; 3] = ["Read", "Grep", "Glob"];
const WRITERS: [&str; 3] = ["Edit", "Write", "NotebookEdit"];

/// `haft_undo(other-sessions)`: calls of other sessions may be undone.
pub(crate) const OTHER_SESSIONS: &str = "other-sessions";
/// `Bash(unsandboxed)`: commands may run without the sandbox.
pub(crate) const UNSANDBOXED: &str = "unsandboxed";

impl Rule {
    /// Reads a rule; `origin` is its place, for example `--allowedTools` or `haft.toml:12`. A specifier that `tools` do not
    /// understand is an error.
    pub fn parse(
        behavior: Behavior,
        text: &str,
        origin: &str,
        workspace: &Path,
        tools: &RuleTools,
    ) -> Result<Self, ToolError> {
        let bad = |why: &str| ToolError::invalid_arguments(format!("{origin}: the rule {text:?} {why}"));
        let text = text.trim();
        let (tool, specifier) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => {
                (tool, Some(rest.strip_suffix(')').ok_or_else(|| bad("has no closing parenthesis"))?))
            }
        };
        if tool.is_empty() || tool.chars().any(char::is_whitespace) {
            return Err(bad("does not start with a tool's name"));
        }
        if tool.trim_end_matches('*').contains('*') {
            return Err(bad("has a `*` inside the tool's name; it is understood at the end only"));
        }
        let tool = tools.canonical(tool, behavior, specifier.is_some());
        let is_path_tool = READERS.contains(&tool) || WRITERS.contains(&tool);
        let bare = if behavior == Behavior::Allow { BareName::InWorkspace } else { BareName::Anywhere };
        let path_pattern = |pattern: &str| PathPattern::parse(pattern, workspace, bare);
        let specifier = match specifier.map(str::trim) {
            // As a path, so that it also holds for the other tools that read or write.
            Some("*" | "") if is_path_tool && behavior != Behavior::Allow => {
                Some(Specifier::Path(path_pattern("//**").map_err(|why| bad(&why))?))
            }
            None | Some("*" | "") => None,
            Some(host) if host.starts_with("domain:") => {
                let entries = with_below(&host["domain:".len()..]);
                let domains = Domains::parse(&entries)
                    .map_err(|error| bad(&format!("is no rule: {}", error.message)))?;
                Some(Specifier::Host(domains, entries))
            }
            Some(pattern) if is_path_tool => {
                Some(Specifier::Path(path_pattern(pattern).map_err(|why| bad(&why))?))
            }
            Some(UNSANDBOXED) => Some(Specifier::Unsandboxed),
            Some(text) => {
                let command = CommandOrName { name: text.to_owned(), command: CommandPattern::new(text) };
                Some(match path_pattern(text) {
                    Ok(paths) => Specifier::Either(paths, command),
                    Err(_) => Specifier::Command(command),
                })
            }
        };
        if let Some(specifier) = &specifier {
            tools.check(tool, specifier).map_err(|why| bad(&why))?;
        }
        Ok(Self {
            behavior,
            tool: tool.to_owned(),
            specifier,
            text: text.to_owned(),
            origin: origin.to_owned(),
            of_dialect: false,
        })
    }

    /// Why the rule has no effect, if it names no tool that could be called.
    pub fn names_nothing(&self, tools: &RuleTools) -> Option<String> {
        let cite = self.cite();
        if self.tool == "mcp__*" && self.behavior == Behavior::Allow {
            return Some(format!(
                "the rule {cite} allows nothing; name the server, for example mcp__NAME__*"
            ));
        }
        tools.unknown(&self.tool).map(|hint| format!("the rule {cite} names no tool. {hint}"))
    }

    /// Lets `tool` touch one path outside the roots; `origin` says who wants it so.
    pub fn grant(tool: &str, path: &Path, origin: &str) -> Result<Self, ToolError> {
        let pattern = PathPattern::of_path(path);
        let pattern = pattern.map_err(|error| ToolError::invalid_path(format!("{origin}: {error}")))?;
        Ok(Self {
            behavior: Behavior::Allow,
            tool: tool.to_owned(),
            specifier: Some(Specifier::Path(pattern)),
            text: format!("{tool}(/{})", path.display()),
            origin: origin.to_owned(),
            of_dialect: false,
        })
    }

    /// Opens a file of the tool's own, such as its memory. The mode decides whether it may be written.
    pub fn of_dialect(tool: &str, path: &Path) -> Result<Self, ToolError> {
        Ok(Self { of_dialect: true, ..Self::grant(tool, path, "the settings of the tool")? })
    }

    /// Whether the dialect made it, for a file of its own.
    pub fn is_of_dialect(&self) -> bool {
        self.of_dialect
    }

    /// What it says.
    pub fn behavior(&self) -> Behavior {
        self.behavior
    }

    /// The rule as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it is written.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The tool that it names.
    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    pub(crate) fn specifier(&self) -> Option<&Specifier> {
        self.specifier.as_ref()
    }

    /// What is written in parentheses, if it says more than the tool.
    pub(crate) fn specifier_text(&self) -> Option<&str> {
        self.specifier.as_ref()?;
        let (_, rest) = self.text.split_once('(')?;
        Some(rest.strip_suffix(')').unwrap_or(rest).trim())
    }

    /// Whether its specifier may be a command.
    pub(crate) fn is_about_commands(&self) -> bool {
        matches!(self.specifier, Some(Specifier::Command(_) | Specifier::Either(..)))
    }

    /// The rule as written, and where.
    pub fn cite(&self) -> String {
        format!("{} ({})", self.text, self.origin)
    }

    /// Whether it ends with `*` or names an MCP server, so that it may mean several tools.
    pub(crate) fn may_name_several_tools(&self) -> bool {
        self.tool.ends_with('*') || self.tool.starts_with("mcp__")
    }

    /// Whether the rule speaks of this tool at all.
    pub(crate) fn names(&self, tool: &str) -> bool {
        if self.tool == tool {
            return true;
        }
        if let Some(prefix) = self.tool.strip_suffix('*') {
            return self.behavior != Behavior::Allow && tool.starts_with(prefix)
                || prefix.len() > "mcp__".len() && tool.starts_with(prefix);
        }
        // `mcp__server` names all tools of that server. What it denies may be too much, what it allows may not: there the
        // effect says whose tool it is.
        if self.behavior != Behavior::Allow
            && self.tool.starts_with("mcp__")
            && tool.strip_prefix(self.tool.as_str()).is_some_and(|rest| rest.starts_with("__"))
        {
            return true;
        }
        false
    }

    /// Whether the rule may speak of the effect, by the tool that it names.
    pub(crate) fn may_speak_of(&self, tool: &str, effect: &Effect) -> bool {
        self.names(tool) || self.covers(effect)
    }

    /// Whether the rule speaks of the effect whatever tool has it: with a specifier, `Edit` covers everything that writes
    /// files, `Read` everything that reads them, `Bash` everything that runs commands, `WebFetch` everything that reaches
    /// hosts.
    fn covers(&self, effect: &Effect) -> bool {
        self.specifier.is_some()
            && match effect {
                Effect::Read { .. } => self.tool == "Read",
                Effect::Write { .. } => self.tool == "Edit",
                Effect::Run { .. } => self.tool == "Bash",
                Effect::Reach { .. } => self.tool == "WebFetch",
                _ => false,
            }
    }

    /// Whether the rule speaks of a call of `tool` with these effects.
    pub fn speaks_of(&self, tool: &str, effects: &[Effect]) -> bool {
        (self.specifier.is_none() && self.names(tool))
            || effects.iter().any(|effect| self.matches(tool, &EffectView::of(effect)))
    }

    /// The path pattern, if it has one.
    pub(crate) fn path_pattern(&self) -> Option<&PathPattern> {
        match &self.specifier {
            Some(Specifier::Path(paths) | Specifier::Either(paths, _)) => Some(paths),
            _ => None,
        }
    }

    /// The command pattern, if it has one.
    pub(crate) fn command_pattern(&self) -> Option<&CommandPattern> {
        match &self.specifier {
            Some(Specifier::Command(text) | Specifier::Either(_, text)) => Some(&text.command),
            _ => None,
        }
    }

    /// Whether the rule speaks of this effect of `tool`. A rule that allows speaks of a command if it allows all of it.
    pub(crate) fn matches(&self, tool: &str, view: &EffectView<'_>) -> bool {
        let effect = view.effect;
        if !self.may_speak_of(tool, effect) {
            return matches!(effect, Effect::Serve { server, .. } if self.tool.strip_prefix("mcp__") == Some(server))
                && self.specifier.is_none();
        }
        match (&self.specifier, effect) {
            (None, _) => true,
            (
                Some(Specifier::Path(paths) | Specifier::Either(paths, _)),
                Effect::Read { path } | Effect::Write { path },
            ) => paths.matches(path),
            (Some(Specifier::Command(text) | Specifier::Either(_, text)), Effect::Run { .. }) => {
                let Some(command) = view.command() else { return false };
                match self.behavior {
                    Behavior::Allow => command.is_covered(&text.command),
                    Behavior::Ask | Behavior::Deny => command.is_touched(&text.command),
                }
            }
            (Some(Specifier::Unsandboxed), Effect::Unsandboxed) => true,
            (
                Some(Specifier::Command(text) | Specifier::Either(_, text)),
                Effect::Undo { own_session, .. },
            ) => text.name == OTHER_SESSIONS && !own_session,
            (Some(Specifier::Command(text) | Specifier::Either(_, text)), Effect::Send { channel }) => {
                text.name == *channel
            }
            (Some(Specifier::Command(text) | Specifier::Either(_, text)), Effect::Spawn { agent }) => {
                text.name == *agent
            }
            // The name of a setting, or the beginning of one: `Config(tools.*)`.
            (
                Some(Specifier::Command(text) | Specifier::Either(_, text)),
                Effect::Configure { setting, .. },
            ) => {
                let whole = text.name.strip_suffix('*').map(|beginning| setting.starts_with(beginning));
                whole.unwrap_or(*setting == text.name)
            }
            (Some(Specifier::Host(domains, _)), Effect::Reach { .. }) => {
                view.place().is_some_and(|place| place.is_named_in(domains))
            }
            _ => false,
        }
    }
}

/// A domain and everything below it; an address and `*.domain` stand for themselves.
fn with_below(domain: &str) -> Vec<String> {
    let alone = domain.starts_with("*.")
        || Authority::parse(domain).is_ok_and(|place| matches!(place.peer, haft_tool::net::Peer::Address(_)));
    let below = (!alone).then(|| format!("*.{domain}"));
    std::iter::once(domain.to_owned()).chain(below).collect()
}
