//! Skills: instructions for certain tasks, in a `SKILL.md` each, that the model reads when it needs them. Commands are skills that
//! only the user calls for: a Markdown file each.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_files::names_in;
use haft_model::ContentPart;
use haft_tool::clip_chars;

use crate::FrontMatter;

/// The directories of skills, below the workspace and below the user's home; the first skill of a name wins.
pub const SKILL_FOLDERS: &[&str] = &[".claude/skills", ".agents/skills", ".haft/skills"];
/// The directory of commands, below the same places as skills.
const COMMAND_FOLDER: &str = ".claude/commands";
/// How deep commands lie in it.
const MAX_COMMAND_DEPTH: usize = 4;
/// Skills that are read from one directory.
const MAX_SKILLS: usize = 500;
const MAX_SKILL_BYTES: u64 = 64 << 10;
/// Skills that the model is told of.
const MAX_LISTED_SKILLS: usize = 50;
const MAX_DESCRIPTION_CHARS: usize = 300;
/// Skills that one prompt adds.
const MAX_TRIGGERED_SKILLS: usize = 3;

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RunSkill {
    name: String,
    description: String,
    /// Words in a prompt that add it.
    triggers: Vec<String>,
    /// The tools that it is meant for.
    tools: Vec<String>,
    /// Whether only the user can call for it.
    is_manual: bool,
    path: PathBuf,
    body: String,
}

/// The skills of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSkills(Vec<RunSkill>);

impl RunSkills {
    /// The skills of the workspace and of the home.
    pub fn read(workspace: &Path, home: Option<&Path>) -> Self {
        let mut all: Vec<RunSkill> = Vec::new();
        let bases = [(workspace, Some(workspace))].into_iter().chain(home.map(|home| (home, None)));
        for (base, project) in bases {
            let mut found: Vec<RunSkill> = Vec::new();
            for folder in SKILL_FOLDERS.iter().map(|name| base.join(name)) {
                let names = names_in(&folder, MAX_SKILLS);
                let skill =
                    |name: &OsString| read_skill(&folder.join(name), &name.to_string_lossy(), project);
                found.extend(names.iter().filter_map(skill));
            }
            add_commands(&mut found, &base.join(COMMAND_FOLDER), project, 0);
            for new in found {
                if all.iter().all(|known| known.name != new.name) {
                    all.push(new);
                }
            }
        }
        Self(all)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|skill| skill.name.as_str())
    }

    /// The skills as the model is told of them; only those below `readable`, if reads are limited to it.
    pub fn listing(&self, readable: Option<&Path>) -> Option<String> {
        let is_listed =
            |skill: &&RunSkill| !skill.is_manual && readable.is_none_or(|root| skill.path.starts_with(root));
        let line = |skill: &RunSkill| {
            let description = skill.description.replace('\n', " ");
            let description = clip_chars(&description, MAX_DESCRIPTION_CHARS, 0);
            format!("\n- {}: {description} ({})", skill.name, skill.path.display())
        };
        let lines: String = self.0.iter().filter(is_listed).take(MAX_LISTED_SKILLS).map(line).collect();
        let head =
            "Skills, which say how to do certain tasks. Read the file of one before you do what it is for:";
        (!lines.is_empty()).then(|| format!("{head}{lines}"))
    }

    /// A prompt, with the skills that it calls for: by `/NAME` at its beginning, or by one of their triggers.
    pub fn content(&self, prompt: &str) -> Vec<ContentPart> {
        let mut content = vec![ContentPart::text(prompt)];
        let lower = prompt.to_lowercase();
        let texts = self.0.iter().filter_map(|skill| {
            let called = called_with(prompt, &skill.name);
            let is_triggered = !skill.is_manual
                && skill.triggers.iter().any(|trigger| has_words(&lower, &trigger.to_lowercase()));
            (called.is_some() || is_triggered).then(|| skill.text(called.unwrap_or_default()))
        });
        content.extend(texts.take(MAX_TRIGGERED_SKILLS).map(ContentPart::text));
        content
    }
}

impl RunSkill {
    /// What the model is told when the skill applies.
    fn text(&self, arguments: &str) -> String {
        let tools = match self.tools.as_slice() {
            [] => String::new(),
            tools => format!(" Its tools: {}.", tools.join(", ")),
        };
        let body = with_arguments(&self.body, arguments);
        format!("The skill {} ({}) applies.{tools}\n\n{body}", self.name, self.path.display())
    }
}

/// The skill in a directory, if it has one.
fn read_skill(directory: &Path, name: &str, project: Option<&Path>) -> Option<RunSkill> {
    let path = directory.join("SKILL.md");
    let front = FrontMatter::of_file(&path, project, MAX_SKILL_BYTES).ok()?;
    let list = |names: [&str; 2]| names.iter().find_map(|name| front.list(name)).unwrap_or_default();
    let split = |items: Vec<String>, at: char| -> Vec<String> {
        let parts = items.iter().flat_map(|item| item.split(at)).map(|part| part.trim().to_owned());
        parts.filter(|part| !part.is_empty()).collect()
    };
    Some(RunSkill {
        name: front.text("name").unwrap_or_else(|| name.to_owned()),
        description: front.text("description").unwrap_or_default(),
        triggers: split(list(["triggers", "trigger"]), '|'),
        tools: split(list(["allowed-tools", "allowed_tools"]), ' '),
        is_manual: front.text("disable-model-invocation").as_deref() == Some("true"),
        path,
        body: front.body,
    })
}

/// Adds the commands in a directory and in those below it.
fn add_commands(to: &mut Vec<RunSkill>, folder: &Path, project: Option<&Path>, depth: usize) {
    if depth > MAX_COMMAND_DEPTH {
        return;
    }
    for name in names_in(folder, MAX_SKILLS) {
        let path = folder.join(&name);
        match path.file_stem().zip(path.extension()) {
            Some((stem, extension)) if extension == "md" => {
                to.extend(read_command(&path, &stem.to_string_lossy(), project));
            }
            _ => add_commands(to, &path, project, depth + 1),
        }
    }
}

/// The command in a file.
fn read_command(path: &Path, name: &str, project: Option<&Path>) -> Option<RunSkill> {
    let front = FrontMatter::of_any_file(path, project, MAX_SKILL_BYTES).ok()?;
    Some(RunSkill {
        name: name.to_owned(),
        description: front.text("description").unwrap_or_default(),
        triggers: Vec::new(),
        tools: front.list("allowed-tools").unwrap_or_default(),
        is_manual: true,
        path: path.to_owned(),
        body: front.body,
    })
}

/// A body with what the user wrote behind the name: all of it for `$ARGUMENTS`, single words for `$1` to `$9`.
fn with_arguments(body: &str, arguments: &str) -> String {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let mut text = String::with_capacity(body.len());
    let mut rest = body;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        rest = after;
        let digit = after.chars().next().and_then(|c| c.to_digit(10)).filter(|digit| *digit > 0);
        if let Some(behind) = after.strip_prefix("ARGUMENTS") {
            text.push_str(arguments);
            rest = behind;
        } else if let Some(number) = digit.and_then(|digit| usize::try_from(digit).ok()) {
            text.push_str(words.get(number - 1).copied().unwrap_or_default());
            rest = after.get(1..).unwrap_or_default();
        } else {
            text.push('$');
        }
    }
    text + rest
}

/// What follows `/name` at the beginning of a prompt.
fn called_with<'a>(prompt: &'a str, name: &str) -> Option<&'a str> {
    let rest = prompt.trim_start().strip_prefix('/')?.strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

/// Whether a text has these words, not as a part of others.
fn has_words(text: &str, words: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    !words.is_empty()
        && text.match_indices(words).any(|(at, found)| {
            let after = text[at + found.len()..].chars().next();
            !is_part(text[..at].chars().next_back()) && !is_part(after)
        })
}
