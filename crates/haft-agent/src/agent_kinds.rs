//! The kinds of subagents: those that are built in, and those of `.claude/agents/*.md` in the project and in the home.

use std::path::{Path, PathBuf};

use haft_files::names_in;
use haft_policy::Mode;
use haft_tool::{ErrorKind, ToolError, close_names};

use crate::FrontMatter;

/// Where definitions are, below the workspace and below the home.
const FOLDER: &str = ".claude/agents";
/// Definitions that are read from one directory.
const MAX_DEFINITIONS: usize = 200;
const MAX_DEFINITION_BYTES: u64 = 256 << 10;
/// How much of a description the model is shown in the list.
const MAX_DESCRIPTION_CHARS: usize = 200;
/// How many kinds the model is shown.
const MAX_LISTED_KINDS: usize = 40;

/// A kind of subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentKind {
    /// Its name, as `subagent_type` gives it.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its part of the system prompt.
    pub prompt: String,
    /// The tools it may call; all if there is no list.
    pub tools: Option<Vec<String>>,
    /// The tools it may not call.
    pub without_tools: Vec<String>,
    /// Whether it may only call tools that read.
    pub reads_only: bool,
    /// The model that its definition names.
    pub model: Option<String>,
    /// The mode that its definition names.
    pub mode: Option<Mode>,
    /// How many rounds it may take.
    pub max_turns: Option<u32>,
}

/// All kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentKinds {
    kinds: Vec<AgentKind>,
    /// What was left out, and why.
    pub warnings: Vec<String>,
}

impl AgentKinds {
    /// The kinds in this workspace. A definition replaces a built-in kind of its name, and the project's one that of the home.
    pub fn read(workspace: &Path, home: Option<&Path>) -> Self {
        let mut all = Self { kinds: built_in(), warnings: Vec::new() };
        let bases = home.map(|home| (home, None)).into_iter().chain([(workspace, Some(workspace))]);
        for (base, project) in bases {
            all.add_folder(&base.join(FOLDER), project);
        }
        all
    }

    fn add_folder(&mut self, folder: &Path, project: Option<&Path>) {
        let mut names = names_in(folder, MAX_DEFINITIONS);
        names.sort();
        for name in names {
            let path = folder.join(name);
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            match definition(&path, project) {
                Ok(kind) => self.add(kind),
                Err(why) => self.warnings.push(format!("{} is not used as an agent: {why}", path.display())),
            }
        }
    }

    /// Adds a kind, which replaces one of its name.
    pub fn add(&mut self, kind: AgentKind) {
        self.kinds.retain(|known| !known.name.eq_ignore_ascii_case(&kind.name));
        self.kinds.push(kind);
    }

    /// The names of the kinds, each with when to use it.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.kinds.iter().map(|kind| (kind.name.as_str(), kind.description.as_str()))
    }

    /// The kind of this name.
    pub fn find(&self, name: &str) -> Result<&AgentKind, ToolError> {
        let wanted = match name.to_ascii_lowercase().as_str() {
            "explore" => "explorer".to_owned(),
            "plan" => "planner".to_owned(),
            other => other.to_owned(),
        };
        let is_it = |kind: &&AgentKind| kind.name.eq_ignore_ascii_case(name);
        let by_other_name = || self.kinds.iter().find(|kind| kind.name.eq_ignore_ascii_case(&wanted));
        self.kinds.iter().find(is_it).or_else(by_other_name).ok_or_else(|| {
            let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
            let near = close_names(name, names.iter().copied());
            let near = near.first().map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
            let message = format!(
                "subagent_type: there is no agent {name:?}.{near} The types are: {}",
                names.join(", ")
            );
            ToolError::new(ErrorKind::InvalidArguments, message)
        })
    }

    /// The kinds as the model is told of them.
    pub fn listing(&self) -> String {
        let mut text = "Agents that the Agent tool starts (subagent_type):".to_owned();
        for kind in self.kinds.iter().take(MAX_LISTED_KINDS) {
            let line = kind.description.lines().next().unwrap_or_default();
            text.push_str(&format!(
                "\n- {}: {}",
                kind.name,
                haft_tool::clip_chars(line, MAX_DESCRIPTION_CHARS, 0)
            ));
        }
        text
    }
}

fn built_in() -> Vec<AgentKind> {
    let kind = |name: &str, description: &str, prompt: &str| AgentKind {
        name: name.to_owned(),
        description: description.to_owned(),
        prompt: prompt.to_owned(),
        ..AgentKind::default()
    };
    let read_only = |kind: AgentKind| AgentKind { reads_only: true, mode: Some(Mode::Plan), ..kind };
    vec![
        kind("general-purpose", "any task of several steps, with all tools", ""),
        read_only(kind(
            "explorer",
            "finds out where and how something is done; only reads",
            "You explore: find what was asked for, quickly, and report it with paths and line numbers. You change nothing.",
        )),
        read_only(kind(
            "planner",
            "works out how to do something, step by step; only reads",
            "You plan: read what matters, then report the steps in order, with the files that each one changes, and how to check \
             the result. You change nothing.",
        )),
    ]
}

/// A kind out of its file.
fn definition(path: &Path, project: Option<&Path>) -> Result<AgentKind, String> {
    let front = FrontMatter::of_file(path, project, MAX_DEFINITION_BYTES)?;
    let file_name = || PathBuf::from(path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = front.text("name").or_else(file_name).unwrap_or_default();
    let description = front.text("description").ok_or("it has no description")?;
    let mode = front.text("permissionMode").map(|mode| mode.parse::<Mode>()).transpose()?;
    let max_turns = front.text("maxTurns").or_else(|| front.text("max_turns"));
    let max_turns =
        max_turns.map(|text| text.parse().map_err(|_| format!("maxTurns: {text:?} is no number")));
    let tools = front.list("tools").filter(|tools| tools.iter().all(|tool| tool != "*"));
    let has_pattern = |tool: &&String| tool.contains(['(', ')']);
    if let Some(tool) = tools.iter().flatten().find(has_pattern) {
        return Err(format!("tools: {tool}: a list of tools has no patterns; rules in haft.toml do"));
    }
    Ok(AgentKind {
        name,
        description,
        prompt: front.body.clone(),
        tools,
        without_tools: front.list("disallowedTools").unwrap_or_default(),
        reads_only: false,
        model: front.text("model").filter(|model| model != "inherit"),
        mode,
        max_turns: max_turns.transpose()?,
    })
}
