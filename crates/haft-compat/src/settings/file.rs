//! One settings file.

use std::str::FromStr;

use super::document::{self, Located, Tree};
use super::error::{SettingsError, SettingsProblem};
use super::hook_settings::HookSettings;
use super::keys::OtherKey;
use super::mcp_servers::{McpServerPattern, read_patterns};
use super::object::{Findings, ObjectReader, Restricts, expected};
use super::permissions::PermissionSettings;
use super::sandbox::ClaudeSandbox;

/// What one settings file says. A value that is absent is `None` or an empty list.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ClaudeSettings {
    /// `permissions`.
    pub permissions: PermissionSettings,
    /// `hooks`.
    pub hooks: HookSettings,
    /// `env`, in the file's order.
    pub env: Vec<EnvSetting>,
    /// `model`.
    pub model: Option<Located<String>>,
    /// `fallbackModel`: a list, or one name.
    pub fallback_model: Vec<Located<String>>,
    /// `sandbox`.
    pub sandbox: ClaudeSandbox,
    /// `enabledMcpjsonServers`: servers of `.mcp.json` that are approved.
    pub enabled_mcpjson_servers: Vec<Located<String>>,
    /// `disabledMcpjsonServers`: servers of `.mcp.json` that are rejected.
    pub disabled_mcpjson_servers: Vec<Located<String>>,
    /// `enableAllProjectMcpServers`.
    pub enable_all_project_mcp_servers: Option<Located<bool>>,
    /// `allowedMcpServers`. An empty list allows none; `None` restricts nothing.
    pub allowed_mcp_servers: Option<Vec<Located<McpServerPattern>>>,
    /// `deniedMcpServers`.
    pub denied_mcp_servers: Vec<Located<McpServerPattern>>,
    /// `disableAllHooks`.
    pub disable_all_hooks: Option<Located<bool>>,
    /// `allowManagedHooksOnly`.
    pub allow_managed_hooks_only: Option<Located<bool>>,
    /// `allowManagedPermissionRulesOnly`.
    pub allow_managed_permission_rules_only: Option<Located<bool>>,
    /// `bashOutputMaxChars`.
    pub bash_output_max_chars: Option<Located<u64>>,
    /// `claudeMdExcludes`: patterns of instruction files that are not read.
    pub claude_md_excludes: Vec<Located<String>>,
    /// `skillOverrides`.
    pub skill_overrides: Vec<SkillOverride>,
    /// `autoMemoryEnabled`.
    pub auto_memory_enabled: Option<Located<bool>>,
    /// Keys that Haft does not apply, known and unknown ones, also below `permissions` and `sandbox`.
    pub other_keys: Vec<OtherKey>,
    /// Values that are not what their key requires. They are left out above.
    pub problems: Vec<SettingsProblem>,
    /// Where the file first uses a comment or a trailing comma, which Claude Code refuses.
    pub not_strict_json: Option<Located<String>>,
}

/// One variable of `env`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvSetting {
    /// Its name.
    pub name: String,
    /// Its value. A number or boolean in the file is its text.
    pub value: Located<String>,
}

/// One entry of `skillOverrides`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillOverride {
    /// The skill's name.
    pub skill: String,
    /// Who sees it.
    pub visibility: Located<SkillVisibility>,
}

/// Who sees a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillVisibility {
    /// `on`: the model, with its description.
    On,
    /// `name-only`: the model, without its description.
    NameOnly,
    /// `user-invocable-only`: the user.
    UserOnly,
    /// `off`: neither.
    Off,
}

impl FromStr for SkillVisibility {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name {
            "on" => Self::On,
            "name-only" => Self::NameOnly,
            "user-invocable-only" => Self::UserOnly,
            "off" => Self::Off,
            _ => {
                let why = "must be \"on\", \"name-only\", \"user-invocable-only\" or \"off\"";
                return Err(format!("{why}, not {name:?}"));
            }
        })
    }
}

impl ClaudeSettings {
    /// Reads a file. A blank file has no settings.
    pub fn parse(bytes: &[u8]) -> Result<Self, SettingsError> {
        let (tree, not_strict_json) = document::parse(bytes)?;
        if !matches!(tree.value, Tree::Object(_)) {
            let why = format!("the file {}", expected("an object", &tree.value));
            return Err(SettingsError::new(bytes, tree.line, tree.column, why));
        }
        let mut findings = Findings::default();
        let mut settings = Self::read(ObjectReader::new("", tree, Restricts::Yes, &mut findings));
        settings.other_keys = findings.other_keys;
        settings.problems = findings.problems;
        settings.not_strict_json = not_strict_json;
        Ok(settings)
    }

    /// The problems that lose a restriction which the file asks for.
    pub fn lost_restrictions(&self) -> impl Iterator<Item = &SettingsProblem> {
        self.problems.iter().filter(|problem| problem.loses_restriction)
    }

    fn read(mut reader: ObjectReader<'_>) -> Self {
        let permissions = reader.object("permissions", Restricts::Yes).map(PermissionSettings::read);
        let sandbox = reader.object("sandbox", Restricts::Yes).map(ClaudeSandbox::read);
        let hooks = reader.object("hooks", Restricts::Yes).map(HookSettings::read);
        let settings = Self {
            permissions: permissions.unwrap_or_default(),
            hooks: hooks.unwrap_or_default(),
            sandbox: sandbox.unwrap_or_default(),
            env: read_env(&mut reader),
            model: reader.text("model", Restricts::No),
            fallback_model: read_fallback_model(&mut reader),
            enabled_mcpjson_servers: reader.texts("enabledMcpjsonServers", Restricts::No).unwrap_or_default(),
            disabled_mcpjson_servers: reader
                .texts("disabledMcpjsonServers", Restricts::Yes)
                .unwrap_or_default(),
            enable_all_project_mcp_servers: reader.bool("enableAllProjectMcpServers", Restricts::No),
            allowed_mcp_servers: read_patterns(&mut reader, "allowedMcpServers"),
            denied_mcp_servers: read_patterns(&mut reader, "deniedMcpServers").unwrap_or_default(),
            disable_all_hooks: reader.bool("disableAllHooks", Restricts::Yes),
            allow_managed_hooks_only: reader.bool("allowManagedHooksOnly", Restricts::Yes),
            allow_managed_permission_rules_only: reader
                .bool("allowManagedPermissionRulesOnly", Restricts::Yes),
            bash_output_max_chars: read_max_chars(&mut reader),
            claude_md_excludes: reader.texts("claudeMdExcludes", Restricts::No).unwrap_or_default(),
            skill_overrides: read_skill_overrides(&mut reader),
            auto_memory_enabled: reader.bool("autoMemoryEnabled", Restricts::No),
            other_keys: Vec::new(),
            problems: Vec::new(),
            not_strict_json: None,
        };
        reader.finish();
        settings
    }
}

fn read_env(reader: &mut ObjectReader<'_>) -> Vec<EnvSetting> {
    let Some(mut object) = reader.object("env", Restricts::No) else { return Vec::new() };
    let mut variables = Vec::new();
    for member in object.rest() {
        let name = member.name.value;
        let text = match &member.value.value {
            Tree::Text(text) => Some(text.clone()),
            Tree::Bool(flag) => Some(flag.to_string()),
            Tree::Number(number) => Some(number.to_string()),
            _ => None,
        };
        // A process cannot have these: the name ends at `=`, and both end at NUL.
        let is_possible = !name.is_empty() && !name.contains(['=', '\0']);
        if let Some(text) = text.filter(|text| is_possible && !text.contains('\0')) {
            variables.push(EnvSetting { name, value: member.value.with(text) });
        } else {
            let why = "is no variable: a name without `=` and a string are required".to_owned();
            object.problem(&name, &member.value, Restricts::No, why);
        }
    }
    variables
}

fn read_fallback_model(reader: &mut ObjectReader<'_>) -> Vec<Located<String>> {
    let Some(value) = reader.take("fallbackModel") else { return Vec::new() };
    let place = value.with(());
    let elements = match value.value {
        Tree::List(elements) => elements,
        other => vec![place.with(other)],
    };
    let mut models = Vec::new();
    for element in elements {
        match &element.value {
            Tree::Text(text) => models.push(element.with(text.clone())),
            other => {
                let why = expected("a list of strings", other);
                reader.problem("fallbackModel", &element, Restricts::No, why);
            }
        }
    }
    models
}

fn read_max_chars(reader: &mut ObjectReader<'_>) -> Option<Located<u64>> {
    let number = reader.number("bashOutputMaxChars", Restricts::No)?;
    if number.value < 0.0 || number.value.fract() != 0.0 {
        let why = "must be a whole number, not below 0".to_owned();
        reader.problem("bashOutputMaxChars", &number, Restricts::No, why);
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above; `as` clamps")]
    Some(number.with(number.value as u64))
}

fn read_skill_overrides(reader: &mut ObjectReader<'_>) -> Vec<SkillOverride> {
    let Some(mut object) = reader.object("skillOverrides", Restricts::No) else { return Vec::new() };
    let mut overrides = Vec::new();
    for member in object.rest() {
        let skill = member.name.value;
        let visibility = match &member.value.value {
            Tree::Text(text) => text.parse(),
            other => Err(expected("a string", other)),
        };
        match visibility {
            Ok(visibility) => {
                overrides.push(SkillOverride { skill, visibility: member.value.with(visibility) });
            }
            Err(why) => object.problem(&skill, &member.value, Restricts::No, why),
        }
    }
    overrides
}
