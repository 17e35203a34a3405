//! Rules in Claude's words: `Tool` or `Tool(specifier)`, each with its origin.

use std::path::{Path, PathBuf};

use globset::GlobMatcher;
use haft_tool::net::{Authority, Domains};
use haft_tool::{Effect, ToolError};

use crate::access::path_glob;
use crate::command;
use crate::decide::Request;
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
    Path(GlobMatcher),
    /// What a tool of any dialect touches, paths or commands: the effect says which is meant.
    Either(GlobMatcher, String),
    Command(String),
    /// The hosts, and how a list of hosts writes them.
    Host(Domains, Vec<String>),
    /// `Bash(unsandboxed)`: commands without the sandbox.
    Unsandboxed,
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
        let specifier = match specifier.map(str::trim) {
            // As a path, so that it also holds for the other tools that read or write.
            Some("*" | "") if is_path_tool && behavior != Behavior::Allow => {
                Some(Specifier::Path(path_pattern("//**", workspace).map_err(|why| bad(&why))?))
            }
            None | Some("*" | "") => None,
            Some(host) if host.starts_with("domain:") => {
                let entries = with_below(&host["domain:".len()..]);
                let domains = Domains::parse(&entries)
                    .map_err(|error| bad(&format!("is no rule: {}", error.message)))?;
                Some(Specifier::Host(domains, entries))
            }
            Some(pattern) if is_path_tool => {
                Some(Specifier::Path(path_pattern(pattern, workspace).map_err(|why| bad(&why))?))
            }
            Some(UNSANDBOXED) => Some(Specifier::Unsandboxed),
            Some(text) => Some(match path_pattern(text, workspace) {
                Ok(paths) => Specifier::Either(paths, text.to_owned()),
                Err(_) => Specifier::Command(text.to_owned()),
            }),
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
        let pattern = globset::escape(&path.to_string_lossy());
        let glob =
            path_glob(&pattern).map_err(|error| ToolError::invalid_path(format!("{origin}: {error}")))?;
        Ok(Self {
            behavior: Behavior::Allow,
            tool: tool.to_owned(),
            specifier: Some(Specifier::Path(glob.compile_matcher())),
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

    /// Whether the rule speaks of this tool at all.
    fn names(&self, tool: &str) -> bool {
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
            || effects.iter().any(|effect| self.matches(tool, effect))
    }

    /// Whether the rule speaks of this effect of `tool`.
    pub(crate) fn matches(&self, tool: &str, effect: &Effect) -> bool {
        if !self.names(tool) && !self.covers(effect) {
            return matches!(effect, Effect::Serve { server, .. } if self.tool.strip_prefix("mcp__") == Some(server))
                && self.specifier.is_none();
        }
        match (&self.specifier, effect) {
            (None, _) => true,
            (
                Some(Specifier::Path(glob) | Specifier::Either(glob, _)),
                Effect::Read { path } | Effect::Write { path },
            ) => path.ancestors().any(|path| glob.is_match(path)),
            (Some(Specifier::Command(pattern) | Specifier::Either(_, pattern)), Effect::Run { command }) => {
                match self.behavior {
                    Behavior::Allow => command::covers(pattern, command),
                    Behavior::Ask | Behavior::Deny => command::touches(pattern, command),
                }
            }
            (Some(Specifier::Unsandboxed), Effect::Unsandboxed) => true,
            (
                Some(Specifier::Command(name) | Specifier::Either(_, name)),
                Effect::Undo { own_session, .. },
            ) => name == OTHER_SESSIONS && !own_session,
            (Some(Specifier::Command(name) | Specifier::Either(_, name)), Effect::Send { channel }) => {
                name == channel
            }
            (Some(Specifier::Command(name) | Specifier::Either(_, name)), Effect::Spawn { agent }) => {
                name == agent
            }
            // The name of a setting, or the beginning of one: `Config(tools.*)`.
            (
                Some(Specifier::Command(name) | Specifier::Either(_, name)),
                Effect::Configure { setting, .. },
            ) => {
                let whole = name.strip_suffix('*').map(|beginning| setting.starts_with(beginning));
                whole.unwrap_or(setting == name)
            }
            (Some(Specifier::Host(domains, _)), Effect::Reach { host }) => {
                Authority::parse(host).is_ok_and(|place| place.is_named_in(domains))
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

/// `//abs`, `~/home`, `/from-the-workspace`, `a/b` and `../a` from the workspace, `*.env` at any depth.
fn path_pattern(pattern: &str, workspace: &Path) -> Result<GlobMatcher, String> {
    let anchored = |root: &Path, rest: &str| format!("{}/{rest}", globset::escape(&root.to_string_lossy()));
    let whole = if let Some(rest) = pattern.strip_prefix("//") {
        format!("/{rest}")
    } else if let Some(rest) = pattern.strip_prefix("~/").or((pattern == "~").then_some("")) {
        let home = std::env::var_os("HOME").map(PathBuf::from).ok_or("needs $HOME, which is not set")?;
        anchored(&home, rest)
    } else if let Some(rest) = pattern.strip_prefix('/').or_else(|| pattern.strip_prefix("./")) {
        anchored(workspace, rest)
    } else if pattern.trim_end_matches('/').contains('/') || matches!(pattern, "." | "..") {
        anchored(workspace, pattern)
    } else {
        format!("**/{pattern}")
    };
    let glob = path_glob(&without_dots(&whole)?);
    glob.map(|glob| glob.compile_matcher()).map_err(|error| format!("is no path pattern: {error}"))
}

/// The pattern without `.`, `..` and slashes at its end: the paths that it is compared with have none.
fn without_dots(pattern: &str) -> Result<String, String> {
    let mut parts = Vec::new();
    for part in pattern.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.pop() {
                Some(above) if above != "**" => {}
                Some(_) => return Err("has `..` after `**`, which has no meaning".to_owned()),
                None => {}
            },
            part => parts.push(part),
        }
    }
    let is_absolute = pattern.starts_with('/');
    Ok(format!("{}{}", if is_absolute { "/" } else { "" }, parts.join("/")))
}

/// All rules of a call, whatever file or flag they come from.
#[derive(Debug, Clone, Default)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Adds a rule.
    pub fn push(&mut self, rule: Rule) {
        self.0.push(rule);
    }

    /// All rules, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }

    /// The first rule of this behavior that speaks of any of the effects (of the tool as such, if it has none).
    pub(crate) fn any(&self, behavior: Behavior, tool: &str, effects: &[Effect]) -> Option<&Rule> {
        self.of(behavior).find(|rule| rule.speaks_of(tool, effects))
    }

    /// The rule that allows this effect of `tool`.
    pub(crate) fn allowing(&self, tool: &str, effect: &Effect) -> Option<&Rule> {
        self.of(Behavior::Allow).find(|rule| !rule.of_dialect && rule.matches(tool, effect))
    }

    /// The rule that allows this effect by naming it, not by naming the tool alone.
    pub(crate) fn granting(&self, tool: &str, effect: &Effect) -> Option<&Rule> {
        self.of(Behavior::Allow).find(|rule| rule.specifier.is_some() && rule.matches(tool, effect))
    }

    /// The rule that allows `tool` whatever it touches.
    pub(crate) fn trusting(&self, tool: &str) -> Option<&Rule> {
        self.of(Behavior::Allow).find(|rule| rule.specifier.is_none() && rule.names(tool))
    }

    /// The absolute globs of paths that rules keep the call from: those of deny rules, and those of ask rules that do not
    /// speak of its own effects, so that no question is asked for them.
    pub(crate) fn withheld_paths(
        &self,
        request: Request<'_>,
        path_use: PathUse,
        user_request: bool,
    ) -> Vec<String> {
        let Request { tool, effects } = request;
        let covering = match path_use {
            PathUse::Read => "Read",
            PathUse::Write => "Edit",
        };
        let withholds = |rule: &&Rule| match rule.behavior {
            Behavior::Allow => false,
            Behavior::Ask => !user_request && !effects.iter().any(|effect| rule.matches(tool, effect)),
            Behavior::Deny => true,
        };
        let speaking =
            self.0.iter().filter(|rule| rule.tool == covering || rule.names(tool)).filter(withholds);
        speaking
            .filter_map(|rule| match &rule.specifier {
                Some(Specifier::Path(glob) | Specifier::Either(glob, _)) => {
                    Some(glob.glob().glob().to_owned())
                }
                _ => None,
            })
            .collect()
    }

    /// The hosts that rules deny `tool` or ask about, as a list of hosts writes them.
    pub(crate) fn held_back(&self, tool: &str) -> Vec<String> {
        let names = |rule: &&Rule| rule.names(tool) || rule.tool == "WebFetch";
        let held = self.0.iter().filter(|rule| rule.behavior != Behavior::Allow).filter(names);
        held.filter_map(|rule| match &rule.specifier {
            Some(Specifier::Host(_, entries)) => Some(entries.clone()),
            _ => None,
        })
        .flatten()
        .collect()
    }

    /// The rule that takes `tool` away as a whole, so that it need not be offered.
    pub fn removing(&self, tool: &str) -> Option<&Rule> {
        self.of(Behavior::Deny).find(|rule| rule.specifier.is_none() && rule.names(tool))
    }

    fn of(&self, behavior: Behavior) -> impl Iterator<Item = &Rule> {
        self.0.iter().filter(move |rule| rule.behavior == behavior)
    }
}
