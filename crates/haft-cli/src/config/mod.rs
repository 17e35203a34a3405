//! What the user has set: `haft.toml`, the environment, and where each value comes from.
//!
//! Two files are read, if they are there: the user's own and the project's. What counts, from most to least: flags, the
//! environment, the user's file, the project's file. A project's file comes with the project, so it may only choose what
//! the user has left open ([`PROJECT_KEYS`]) and ask or deny more; it cannot widen what calls may touch.

mod edit;
mod file;
mod pinned;
mod places;
mod sections;
mod servers;
mod skills;

use std::path::{Path, PathBuf};

use haft_files::real_named;
use haft_policy::Behavior;
use haft_tool::{Configuration, ErrorKind, Setting, ToolError, Value, close_names};
use haft_tools::Settings;
use serde_json::Map;

use file::File;
pub(crate) use places::user_file;
pub(crate) use sections::{DialectName, NetworkWords, Permissions, Sections};
pub(crate) use servers::{Configured, PROJECT_SERVERS, Servers};

/// What a project's file may set. All else is only read from the user's own.
pub(crate) const PROJECT_KEYS: &[&str] = &["dialect", "offer", "permissions.ask", "permissions.deny"];

/// The variables that stand above the files, and the setting each of them sets.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    ("HAFT_DIALECT", "dialect"),
    ("HAFT_OFFER", "offer"),
    ("HAFT_PERMISSION_MODE", "permission_mode"),
    ("HAFT_SANDBOX", "sandbox"),
    ("HAFT_NETWORK", "network"),
];

/// Looks up a variable of the environment.
type Var<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What counts here, and what it was made of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    /// What counts.
    pub values: Sections,
    /// Warnings about the files.
    pub warnings: Vec<String>,
    path: Option<PathBuf>,
    project_path: PathBuf,
    user: Option<File>,
    project: Option<File>,
    variables: Vec<(&'static str, &'static str)>,
    tools_from_env: Vec<String>,
}

impl Config {
    /// Reads the files and the environment of this process, for calls in `workspace`.
    pub(crate) fn load(workspace: &Path) -> Result<Self, ToolError> {
        Self::read(user_file()?, workspace, &|name| std::env::var(name).ok())
    }

    /// Reads these files and variables.
    pub(crate) fn read(path: Option<PathBuf>, workspace: &Path, var: Var<'_>) -> Result<Self, ToolError> {
        let project_path = workspace.join(places::NAME);
        let mut config = Self { path, project_path, ..Self::default() };
        config.user = config.path.as_deref().map(File::open).transpose()?.flatten();
        if config.path.as_ref() != Some(&config.project_path) {
            config.project = File::open(&config.project_path)?;
        }
        config.values = config.user.as_ref().map(|file| file.sections.clone()).unwrap_or_default();
        config.take_project();
        config.take_environment(var)?;
        let unknown = config.unknown()?;
        config.warnings.extend(unknown);
        Ok(config)
    }

    /// What to say of keys that mean nothing.
    fn unknown(&self) -> Result<Vec<String>, ToolError> {
        let mut said = Vec::new();
        for file in self.user.iter().chain(&self.project) {
            for (line, name) in &file.unknown {
                let known = self.settings()?;
                let near = close_names(name, known.iter().map(|setting| setting.name.as_str()));
                let hint = near.first().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                said.push(format!("{}:{line}: there is no setting {name}{hint}", file.path.display()));
            }
        }
        Ok(said)
    }

    /// The project's file speaks where the user's is silent, and may ask and deny more.
    fn take_project(&mut self) {
        let Some(project) = &self.project else { return };
        let Sections { dialect, offer, permissions, .. } = project.sections.clone();
        self.values.dialect = self.values.dialect.take().or(dialect);
        self.values.offer = self.values.offer.take().or(offer);
        self.values.permissions.ask.extend(permissions.ask);
        self.values.permissions.deny.extend(permissions.deny);
        let own = self.path.as_ref().map(|path| path.display().to_string());
        let own = own.unwrap_or_else(|| "your own haft.toml".to_owned());
        for (name, line) in &project.lines {
            if !PROJECT_KEYS.contains(&name.as_str())
                && !project.unknown.iter().any(|(_, known)| known == name)
            {
                self.warnings.push(format!(
                    "{}:{line}: {name} is not read from a project's file; it belongs into {own}",
                    project.path.display()
                ));
            }
        }
    }

    fn take_environment(&mut self, var: Var<'_>) -> Result<(), ToolError> {
        for (variable, name) in VARIABLES {
            let Some(text) = var(variable).filter(|text| !text.is_empty()) else { continue };
            self.values
                .set(name, &text)
                .map_err(|why| ToolError::invalid_arguments(format!("the variable {variable}: {why}")))?;
            self.variables.push((variable, name));
        }
        let tools = std::mem::take(&mut self.values.tools);
        self.values.tools = tools.with_env(var);
        let (none, some) = (Settings::default(), Settings::default().with_env(var));
        if none != some {
            let (none, some) = (leaves(&serde_json::to_value(none)?), leaves(&serde_json::to_value(some)?));
            let set = some.iter().filter(|(name, value)| none.iter().all(|(n, v)| (n, v) != (name, value)));
            self.tools_from_env = set.map(|(name, _)| format!("tools.{name}")).collect();
        }
        Ok(())
    }

    /// The rules, each with where it stands.
    pub(crate) fn rules(&self) -> Vec<(Behavior, String, String)> {
        let mut rules = Vec::new();
        for (file, own) in [(&self.user, true), (&self.project, false)] {
            let Some(file) = file else { continue };
            let Permissions { allow, ask, deny } = &file.sections.permissions;
            let mut add = |behavior, name: &str, all: &[String]| {
                let line = file.line(name).map(|line| format!(":{line}")).unwrap_or_default();
                let origin = format!("{}{line}", file.path.display());
                rules.extend(all.iter().map(|rule| (behavior, rule.clone(), origin.clone())));
            };
            if own {
                add(Behavior::Allow, "permissions.allow", allow);
            }
            add(Behavior::Ask, "permissions.ask", ask);
            add(Behavior::Deny, "permissions.deny", deny);
        }
        rules
    }

    /// The user's own file, whether it is there or not.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Every setting that counts, in the order of the sections. What is secret is covered.
    pub(crate) fn settings(&self) -> Result<Vec<Setting>, ToolError> {
        let mut all = serde_json::to_value(&self.values)?;
        let defaults = Sections::defaults();
        for (name, value) in defaults {
            if all[name].is_null() {
                all[name] = Value::from(value);
            }
        }
        let named = leaves(&all).into_iter();
        Ok(named
            .map(|(name, value)| {
                let (origin, value) = (self.origin(&name, &value), covered(&name, value));
                Setting { name, value, origin }
            })
            .collect())
    }

    fn origin(&self, name: &str, value: &Value) -> String {
        if let Some((variable, _)) = self.variables.iter().find(|(_, of)| *of == name) {
            return format!("${variable}");
        }
        if self.tools_from_env.iter().any(|from| from == name) {
            return "the environment".to_owned();
        }
        let mut places = Vec::new();
        for file in self.user.iter().chain(&self.project) {
            let own = self.user.as_ref().is_some_and(|user| user.path == file.path);
            match file.line(name) {
                Some(line) if own || PROJECT_KEYS.contains(&name) => {
                    places.push(format!("{}:{line}", file.path.display()));
                }
                _ => {}
            }
        }
        // Only rules add up; of the others the first counts.
        places.truncate(if name.starts_with("permissions.") { 2 } else { 1 });
        match places.as_slice() {
            [] if value.is_null() => "not set".to_owned(),
            [] => "default".to_owned(),
            places => places.join(" and "),
        }
    }

    /// The setting of that name, or what to tell instead.
    pub(crate) fn setting(&self, name: &str) -> Result<Setting, ToolError> {
        let mut all = self.settings()?;
        if let Some(at) = all.iter().position(|setting| setting.name == name) {
            return Ok(all.swap_remove(at));
        }
        let below: Vec<_> = all.iter().filter(|setting| is_below(&setting.name, name)).collect();
        if below.is_empty() {
            return Err(unknown(name, &all));
        }
        let value = below.iter().map(|setting| (setting.name.clone(), setting.value.clone()));
        Ok(Setting {
            name: name.to_owned(),
            value: Value::Object(value.collect::<Map<_, _>>()),
            origin: below[0].origin.clone(),
        })
    }

    /// What `name` names: one setting, or all of a table.
    pub(crate) fn chosen(&self, name: &str) -> Result<Vec<Setting>, ToolError> {
        let all = self.settings()?;
        let chosen: Vec<_> = all
            .iter()
            .filter(|setting| setting.name == name || is_below(&setting.name, name))
            .cloned()
            .collect();
        if chosen.is_empty() { Err(unknown(name, &all)) } else { Ok(chosen) }
    }
}

fn is_below(name: &str, table: &str) -> bool {
    name.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
}

fn unknown(name: &str, all: &[Setting]) -> ToolError {
    let near = close_names(name, all.iter().map(|setting| setting.name.as_str()));
    let hint = match near.as_slice() {
        [] => "`haft config show` lists them".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    ToolError::new(ErrorKind::TargetNotFound, format!("there is no setting {name:?}; {hint}"))
}

/// What servers are given often holds keys, and has no type of its own that would cover them.
fn covered(name: &str, value: Value) -> Value {
    let given = |part: &str| name.starts_with("tools.mcp_servers.") && name.contains(part);
    if given(".env.") || given(".headers.") { Value::from("***") } else { value }
}

/// Every value with the names that lead to it; an empty table is one too.
fn leaves(value: &Value) -> Vec<(String, Value)> {
    let Value::Object(members) = value else { return Vec::new() };
    let mut all = Vec::new();
    for (name, value) in members {
        match value {
            Value::Object(inside) if !inside.is_empty() => {
                all.extend(leaves(value).into_iter().map(|(rest, value)| (format!("{name}.{rest}"), value)));
            }
            value => all.push((name.clone(), value.clone())),
        }
    }
    all
}

/// The settings as a tool sees them. Each look reads the files again, so that a change is seen at once.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    path: PathBuf,
    workspace: PathBuf,
}

impl Live {
    /// The settings whose changes go to `path`, or to where it leads if it is a link.
    pub(crate) fn new(path: PathBuf, workspace: PathBuf) -> Self {
        Self { path: real_named(&path).unwrap_or(path), workspace }
    }

    fn now(&self) -> Result<Config, ToolError> {
        Config::read(Some(self.path.clone()), &self.workspace, &|name| std::env::var(name).ok())
    }
}

impl Configuration for Live {
    fn file(&self) -> &Path {
        &self.path
    }

    fn list(&self) -> Result<Vec<Setting>, ToolError> {
        self.now()?.settings()
    }

    fn get(&self, name: &str) -> Result<Setting, ToolError> {
        self.now()?.setting(name)
    }

    fn changed(&self, file: Option<&[u8]>, name: &str, value: &Value) -> Result<Vec<u8>, ToolError> {
        edit::changed(&self.path, file, name, value).map_err(|problem| match problem {
            edit::Problem::Unknown => match self.list() {
                Ok(all) => unknown(name, &all),
                Err(error) => error,
            },
            edit::Problem::Bad(why) => ToolError::invalid_arguments(format!("{name}: {why}")),
        })
    }
}
