//! Which files there are, in the order of their precedence.

use std::path::{Path, PathBuf};

use haft_compat::settings::{ClaudeSettings, KeyStatus, MAX_SETTINGS_BYTES};
use haft_files::{names_in, read_named};
use haft_tool::{ErrorKind, ToolError};

/// Where the administrator of the machine keeps settings.
const MANAGED_DIRECTORY: &str =
    if cfg!(target_os = "macos") { "/Library/Application Support/ClaudeCode" } else { "/etc/claude-code" };
const MANAGED_NAME: &str = "managed-settings.json";
/// A directory with further managed files, which are read in the order of their names.
const MANAGED_PARTS: &str = "managed-settings.d";
/// More of them are not read.
const MAX_MANAGED_PARTS: usize = 1_000;

/// Where a file comes from; the first has the highest precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingsLayer {
    /// The administrator of the machine.
    Managed,
    /// `--settings`.
    Flag,
    /// `.claude/settings.local.json` of the project.
    Local,
    /// `.claude/settings.json` of the project.
    Project,
    /// The user's own.
    User,
}

impl SettingsLayer {
    /// Whether the user, or the administrator of the machine, wrote it; a project's files came with the project.
    pub(crate) const fn is_own(self) -> bool {
        !matches!(self, Self::Local | Self::Project)
    }

    /// Its name in `--setting-sources`, if it can be left out there.
    const fn source_name(self) -> Option<&'static str> {
        match self {
            Self::Managed | Self::Flag => None,
            Self::Local => Some("local"),
            Self::Project => Some("project"),
            Self::User => Some("user"),
        }
    }
}

/// What the command line says about these files.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingsFlags {
    /// `--settings`: a file, or its content.
    pub(crate) settings: Option<String>,
    /// `--managed-settings`: the same, as the administrator's.
    pub(crate) managed: Option<String>,
    /// `--setting-sources`; all by default.
    pub(crate) sources: Option<Vec<String>>,
}

/// One file.
#[derive(Debug, Clone)]
pub(crate) struct ClaudeFile {
    pub(crate) layer: SettingsLayer,
    /// Its path, or the flag with its content.
    pub(crate) origin: String,
    /// What paths that begin with one slash are relative to.
    pub(crate) root: PathBuf,
    pub(crate) settings: ClaudeSettings,
}

/// All files that there are.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClaudeFiles {
    /// The one with the highest precedence first.
    pub(crate) files: Vec<ClaudeFile>,
    /// What is wrong with them and does not stop a run.
    pub(crate) warnings: Vec<String>,
}

impl ClaudeFiles {
    /// Reads the files for calls in `workspace`. A file that cannot be read is an error if it may deny something.
    pub(crate) fn read(
        workspace: &Path,
        flags: &SettingsFlags,
        variable: &dyn Fn(&str) -> Option<PathBuf>,
    ) -> Result<Self, ToolError> {
        let mut all = Self::default();
        for path in managed_files() {
            all.add_file(SettingsLayer::Managed, &path, Path::new(MANAGED_DIRECTORY))?;
        }
        if let Some(given) = &flags.managed {
            all.add_flag(SettingsLayer::Managed, "--managed-settings", given, workspace)?;
        }
        if let Some(given) = &flags.settings {
            all.add_flag(SettingsLayer::Flag, "--settings", given, workspace)?;
        }
        let is_wanted = |layer: SettingsLayer| {
            let named =
                |name: &str, sources: &Vec<String>| sources.iter().any(|source| source.trim() == name);
            let sources = flags.sources.as_ref();
            sources.is_none_or(|sources| layer.source_name().is_none_or(|name| named(name, sources)))
        };
        let folder = workspace.join(".claude");
        for (layer, name) in
            [(SettingsLayer::Local, "settings.local.json"), (SettingsLayer::Project, "settings.json")]
        {
            if is_wanted(layer) {
                all.add_file(layer, &folder.join(name), workspace)?;
            }
        }
        let own = variable("CLAUDE_CONFIG_DIR").or_else(|| Some(variable("HOME")?.join(".claude")));
        let own = own.filter(|own| own.is_absolute() && *own != folder && is_wanted(SettingsLayer::User));
        if let Some(own) = own {
            all.add_file(SettingsLayer::User, &own.join("settings.json"), &own)?;
        }
        Ok(all)
    }

    fn add_flag(
        &mut self,
        layer: SettingsLayer,
        flag: &str,
        given: &str,
        workspace: &Path,
    ) -> Result<(), ToolError> {
        if given.trim_start().starts_with('{') {
            return self.add(layer, flag, workspace, given.as_bytes());
        }
        let path = std::path::absolute(given).map_err(|error| ToolError::io(given, &error))?;
        let bytes = read_named(&path, MAX_SETTINGS_BYTES as u64)?;
        self.add(layer, &path.display().to_string(), workspace, &bytes)
    }

    fn add_file(&mut self, layer: SettingsLayer, path: &Path, root: &Path) -> Result<(), ToolError> {
        match read_named(path, MAX_SETTINGS_BYTES as u64) {
            Ok(bytes) => self.add(layer, &path.display().to_string(), root, &bytes),
            Err(error) if error.kind == ErrorKind::FileNotFound => Ok(()),
            // It may deny something.
            Err(error) => Err(error),
        }
    }

    fn add(
        &mut self,
        layer: SettingsLayer,
        origin: &str,
        root: &Path,
        bytes: &[u8],
    ) -> Result<(), ToolError> {
        let refused = |why: String| Err(ToolError::invalid_arguments(format!("{origin}:{why}")));
        let settings = match ClaudeSettings::parse(bytes) {
            Ok(settings) => settings,
            Err(error) if !error.may_hold_deny_rules && layer != SettingsLayer::Managed => {
                self.warnings.push(format!("{origin}:{error}; the file is not used"));
                return Ok(());
            }
            Err(error) => {
                return refused(format!(
                    "{error}. The file may deny something, so nothing runs without it. Repair it, or leave it out with \
                     --setting-sources"
                ));
            }
        };
        if let Some(lost) = settings.lost_restrictions().next() {
            return refused(format!("{lost}. It restricts something, so nothing runs without it. Repair it"));
        }
        let is_managed = layer == SettingsLayer::Managed;
        if let Some(key) = settings.other_keys.iter().find(|key| is_managed && key.restricts()) {
            return refused(format!("{}: {} restricts something that Haft cannot hold", key.line, key.name));
        }
        self.warnings.extend(settings.problems.iter().map(|problem| format!("{origin}:{problem}")));
        for key in &settings.other_keys {
            if let KeyStatus::Unknown { nearest } = key.status {
                let hint = nearest.map(|near| format!(". Did you mean {near}?")).unwrap_or_default();
                self.warnings.push(format!("{origin}:{}: there is no key {}{hint}", key.line, key.name));
            }
        }
        self.files.push(ClaudeFile { layer, origin: origin.to_owned(), root: root.to_owned(), settings });
        Ok(())
    }
}

/// The administrator's files.
fn managed_files() -> Vec<PathBuf> {
    let directory = Path::new(MANAGED_DIRECTORY);
    let parts = directory.join(MANAGED_PARTS);
    let names = names_in(&parts, MAX_MANAGED_PARTS).into_iter();
    let json = names.filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "json"));
    std::iter::once(directory.join(MANAGED_NAME)).chain(json.map(|name| parts.join(name))).collect()
}
