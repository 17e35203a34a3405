//! The settings: `haft.toml` of the user and of the project, environment variables, and the origin of each value.
//!
//! Precedence: flags, environment, the user's file, the project's file. A project's file is untrusted: it may only set
//! [`PROJECT_KEYS`], and cannot widen the scope.

mod agents_section;
mod edit;
mod file;
mod ledger_section;
mod model_section;
mod network_section;
mod pinned;
mod places;
mod project;
mod proxies;
mod proxy_section;
mod sandbox_section;
mod sections;
mod servers;
mod skills;

use std::path::{Path, PathBuf};

use haft_files::real_named;
use haft_policy::{Behavior, RuleText};
use haft_tool::{Configuration, ErrorKind, Setting, ToolError, Value, close_names};
use haft_tools::Settings;
use serde_json::Map;

use file::SettingsFile;
pub(crate) use ledger_section::LedgerSection;
pub(crate) use model_section::ModelSection;
pub(crate) use network_section::NetworkWords;
pub(crate) use places::{required_user_file, user_file};
pub(crate) use project::Project;
pub(crate) use proxies::ConfiguredProxies;
pub(crate) use sandbox_section::{ByteSize, ReadScope, SandboxSection};
pub(crate) use sections::{DialectName, Permissions, Sections};
pub(crate) use servers::{ConfiguredServer, ConfiguredServers, PROJECT_SERVERS};

/// The settings that a project's file may set.
pub(crate) const PROJECT_KEYS: &[&str] = &["dialect", "offer", "permissions.ask", "permissions.deny"];

/// The variables that override the files, with their settings.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    ("HAFT_DIALECT", "dialect"),
    ("HAFT_OFFER", "offer"),
    ("HAFT_PERMISSION_MODE", "permission_mode"),
    ("HAFT_SANDBOX", "sandbox"),
    ("HAFT_NAMESPACES", "sandbox.namespaces"),
    ("HAFT_NETWORK", "network"),
];

/// Looks up a variable of the environment.
type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The settings in effect and their sources.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    /// The values in effect.
    pub values: Sections,
    /// Warnings about the files.
    pub warnings: Vec<String>,
    path: Option<PathBuf>,
    project_path: PathBuf,
    user: Option<SettingsFile>,
    project: Option<SettingsFile>,
    variables: Vec<(&'static str, &'static str)>,
    tools_from_env: Vec<String>,
}

impl Config {
    /// Reads the files and the environment of this process, for calls in `workspace`.
    pub(crate) fn load(workspace: &Path) -> Result<Self, ToolError> {
        Self::read(user_file()?, workspace, &|name| std::env::var(name).ok())
    }

    /// Reads these files and variables.
    pub(crate) fn read(
        path: Option<PathBuf>,
        workspace: &Path,
        var: VariableLookup<'_>,
    ) -> Result<Self, ToolError> {
        let project_path = workspace.join(places::NAME);
        let mut config = Self { path, project_path, ..Self::default() };
        config.user = config.path.as_deref().map(SettingsFile::open).transpose()?.flatten();
        if config.path.as_ref() != Some(&config.project_path) {
            config.project = SettingsFile::open(&config.project_path)?;
        }
        config.values = config.user.as_ref().map(|file| file.sections.clone()).unwrap_or_default();
        config.apply_project();
        config.apply_environment(var)?;
        let warnings = config.unknown_key_warnings()?;
        config.warnings.extend(warnings);
        Ok(config)
    }

    /// Warnings about unknown keys.
    fn unknown_key_warnings(&self) -> Result<Vec<String>, ToolError> {
        let mut warnings = Vec::new();
        for file in self.user.iter().chain(&self.project) {
            for (line, name) in &file.unknown {
                let known = self.settings()?;
                let near = close_names(name, known.iter().map(|setting| setting.name.as_str()));
                let hint = near.first().map(|near| format!(". Did you mean {near}?")).unwrap_or_default();
                warnings.push(format!("{}:{line}: there is no setting {name}{hint}", file.path.display()));
            }
        }
        Ok(warnings)
    }

    /// Applies the project's file where the user's sets nothing, and adds its `ask` and `deny` rules.
    fn apply_project(&mut self) {
        let Some(project) = &self.project else { return };
        let Sections { dialect, offer, permissions, .. } = project.sections.clone();
        self.values.dialect = self.values.dialect.take().or(dialect);
        self.values.offer = self.values.offer.take().or(offer);
        self.values.permissions.ask.extend(permissions.ask);
        self.values.permissions.deny.extend(permissions.deny);
        let own = self.path.as_ref().map(|path| path.display().to_string());
        let own = own.unwrap_or_else(|| "your haft.toml".to_owned());
        for (name, line) in &project.lines {
            if !PROJECT_KEYS.contains(&name.as_str())
                && !project.unknown.iter().any(|(_, known)| known == name)
            {
                self.warnings.push(format!(
                    "{}:{line}: {name} is ignored in a project's file. Set it in {own}",
                    project.path.display()
                ));
            }
        }
    }

    fn apply_environment(&mut self, var: VariableLookup<'_>) -> Result<(), ToolError> {
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

    /// The rules with their origin.
    pub(crate) fn rules(&self) -> Vec<(Behavior, RuleText, String)> {
        let mut rules = Vec::new();
        for (file, own) in [(&self.user, true), (&self.project, false)] {
            let Some(file) = file else { continue };
            let Permissions { allow, ask, deny } = &file.sections.permissions;
            let mut add = |behavior, name: &str, all: &[RuleText]| {
                let lines: Vec<usize> = file.element_lines(name).collect();
                for (at, rule) in all.iter().enumerate() {
                    let line = lines.get(at).copied().or_else(|| file.line(name)).unwrap_or(1);
                    rules.push((behavior, rule.clone(), format!("{}:{line}", file.path.display())));
                }
            };
            if own {
                add(Behavior::Allow, "permissions.allow", allow);
            }
            add(Behavior::Ask, "permissions.ask", ask);
            add(Behavior::Deny, "permissions.deny", deny);
        }
        rules
    }

    /// The network access of commands in `workspace` and of the settings' presets, unless a flag names another.
    pub(crate) fn network(&self, workspace: &Path) -> NetworkWords {
        let allow =
            self.values.network.allow.clone().unwrap_or_else(|| NetworkWords(vec!["none".to_owned()]));
        let project = self.values.projects.get(&project_key(workspace));
        allow.with_project(project.map_or(&[], |project| &project.network))
    }

    /// The path of the user's file, which may not exist.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Every setting, in the order of the sections. Secrets are masked.
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
                let (origin, value) = (self.origin(&name, &value), masked(&name, value));
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
        // Rules of both files apply; of other settings the first.
        places.truncate(if name.starts_with("permissions.") { 2 } else { 1 });
        match places.as_slice() {
            [] if value.is_null() => "not set".to_owned(),
            [] => "default".to_owned(),
            places => places.join(" and "),
        }
    }

    /// The setting of that name; for a table, all settings in it.
    pub(crate) fn setting(&self, name: &str) -> Result<Setting, ToolError> {
        let mut all = self.settings()?;
        if let Some(at) = all.iter().position(|setting| setting.name == name) {
            return Ok(all.swap_remove(at));
        }
        let below: Vec<_> = all.iter().filter(|setting| is_below(&setting.name, name)).collect();
        if below.is_empty() && is_project_setting(name) {
            return Ok(Setting { name: name.to_owned(), value: Value::Null, origin: "not set".to_owned() });
        }
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

    /// The elements of a list in the user's own file, without those that a project adds. One that is not set has none.
    pub(crate) fn own_list(&self, name: &str) -> Result<Vec<String>, ToolError> {
        // Names a setting that does not exist.
        self.setting(name)?;
        let own = self.user.as_ref().map(|file| serde_json::to_value(&file.sections)).transpose()?;
        let own = leaves(&own.unwrap_or_default()).into_iter().find(|(key, _)| key == name);
        let no_list = |why: String| Err(ToolError::invalid_arguments(format!("{name} {why}")));
        match own.map(|(_, value)| value).unwrap_or_default() {
            Value::Null => Ok(Vec::new()),
            Value::String(word) if name.starts_with("network") && word == "none" => Ok(Vec::new()),
            Value::Array(values) => {
                let words = values.iter().map(|value| value.as_str().map(str::to_owned));
                words.collect::<Option<_>>().map_or_else(|| no_list("is not a list of words".to_owned()), Ok)
            }
            value => no_list(format!("is {value}, not a list. To replace it: haft config set {name} VALUE")),
        }
    }

    /// The settings that `name` names: one, or all of a table.
    pub(crate) fn matching(&self, name: &str) -> Result<Vec<Setting>, ToolError> {
        let all = self.settings()?;
        let chosen: Vec<_> = all
            .iter()
            .filter(|setting| setting.name == name || is_below(&setting.name, name))
            .cloned()
            .collect();
        if chosen.is_empty() { Err(unknown(name, &all)) } else { Ok(chosen) }
    }
}

/// The name of a project in the table `projects`.
pub(crate) fn project_key(workspace: &Path) -> String {
    real_named(workspace).unwrap_or_else(|_| workspace.to_owned()).display().to_string()
}

/// Whether a name is that of a setting of a project, which may have none yet.
fn is_project_setting(name: &str) -> bool {
    let keys = toml_edit::Key::parse(name).unwrap_or_default();
    let keys: Vec<&str> = keys.iter().map(toml_edit::Key::get).collect();
    matches!(keys[..], ["projects", _, "network"])
}

/// A key as TOML has it, quoted where that is necessary.
pub(crate) fn quoted_key(name: &str) -> String {
    toml_edit::Key::new(name).to_string()
}

fn is_below(name: &str, table: &str) -> bool {
    name.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
}

fn unknown(name: &str, all: &[Setting]) -> ToolError {
    let near = close_names(name, all.iter().map(|setting| setting.name.as_str()));
    let hint = match near.as_slice() {
        [] => "See `haft config show`".to_owned(),
        near => format!("Did you mean {}?", near.join(" or ")),
    };
    ToolError::new(ErrorKind::TargetNotFound, format!("there is no setting {name:?}. {hint}"))
}

/// Masks variables and headers of servers, which often are secrets.
fn masked(name: &str, value: Value) -> Value {
    let given = |part: &str| name.starts_with("tools.mcp_servers.") && name.contains(part);
    if given(".env.") || given(".headers.") { Value::from("***") } else { value }
}

/// Every value with its dotted name; an empty table counts as a value.
fn leaves(value: &Value) -> Vec<(String, Value)> {
    let Value::Object(members) = value else { return Vec::new() };
    let mut all = Vec::new();
    for (name, value) in members {
        let name = quoted_key(name);
        match value {
            Value::Object(inside) if !inside.is_empty() => {
                all.extend(leaves(value).into_iter().map(|(rest, value)| (format!("{name}.{rest}"), value)));
            }
            value => all.push((name, value.clone())),
        }
    }
    all
}

/// The settings for tools. Every access reads the files again.
#[derive(Debug, Clone)]
pub(crate) struct LiveSettings {
    path: PathBuf,
    workspace: PathBuf,
}

impl LiveSettings {
    /// Settings whose changes are written to `path`, or to its target if it is a link.
    pub(crate) fn new(path: PathBuf, workspace: PathBuf) -> Self {
        Self { path: real_named(&path).unwrap_or(path), workspace }
    }

    fn current(&self) -> Result<Config, ToolError> {
        Config::read(Some(self.path.clone()), &self.workspace, &|name| std::env::var(name).ok())
    }
}

impl Configuration for LiveSettings {
    fn file(&self) -> &Path {
        &self.path
    }

    fn list(&self) -> Result<Vec<Setting>, ToolError> {
        self.current()?.settings()
    }

    fn get(&self, name: &str) -> Result<Setting, ToolError> {
        self.current()?.setting(name)
    }

    fn changed(&self, file: Option<&[u8]>, name: &str, value: &Value) -> Result<Vec<u8>, ToolError> {
        edit::set(&self.path, file, name, value).map_err(|problem| match problem {
            edit::EditError::UnknownSetting => match self.list() {
                Ok(all) => unknown(name, &all),
                Err(error) => error,
            },
            edit::EditError::Invalid(why) => ToolError::invalid_arguments(format!("{name}: {why}")),
        })
    }
}
