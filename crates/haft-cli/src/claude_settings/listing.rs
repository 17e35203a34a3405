//! The values of Claude Code's settings files, each with its place.

use haft_compat::settings::{HookAction, KeyStatus, Located, SettingsRule};
use haft_tool::{Setting, Value, json};

use super::{ClaudeFile, ClaudeFiles};

/// What is said of a value that Haft does not apply.
const NO_EFFECT: &str = "no effect here";

/// All values of the files, in their order. What has no effect says so.
pub(crate) fn listing(files: &ClaudeFiles) -> Vec<Setting> {
    files.files.iter().flat_map(|file| Listing { file, settings: Vec::new() }.all()).collect()
}

/// The values of one file.
struct Listing<'a> {
    file: &'a ClaudeFile,
    settings: Vec<Setting>,
}

impl Listing<'_> {
    fn all(mut self) -> Vec<Setting> {
        let settings = &self.file.settings;
        let permissions = &settings.permissions;
        self.rules("permissions.deny", &permissions.deny);
        self.rules("permissions.ask", &permissions.ask);
        self.rules("permissions.allow", &permissions.allow);
        if let Some(mode) = &permissions.default_mode {
            let name = super::effective::mode_of(mode.value).name();
            self.add("permissions.defaultMode", mode.line, name.into());
        }
        self.texts("permissions.additionalDirectories", &permissions.additional_directories);
        self.flag(
            "permissions.disableBypassPermissionsMode",
            permissions.disable_bypass_permissions_mode.as_ref(),
        );
        let reads = permissions.block_reads_outside_working_directories.as_ref();
        self.flag("permissions.blockReadsOutsideWorkingDirectories", reads);
        self.flag("permissions.denyInsteadOfPrompting", permissions.deny_instead_of_prompting.as_ref());
        for variable in &settings.env {
            // It may be a key.
            let value = if variable.value.value.is_empty() { "" } else { "…" };
            self.add(&format!("env.{}", variable.name), variable.value.line, value.into());
        }
        self.hooks();
        let sandbox = &settings.sandbox;
        self.texts("sandbox.filesystem.allowWrite", &sandbox.filesystem.allow_write);
        self.texts("sandbox.filesystem.denyWrite", &sandbox.filesystem.deny_write);
        self.texts("sandbox.filesystem.denyRead", &sandbox.filesystem.deny_read);
        self.texts("sandbox.network.allowedDomains", &sandbox.network.allowed_domains);
        self.texts("sandbox.network.deniedDomains", &sandbox.network.denied_domains);
        self.flag("sandbox.network.strictAllowlist", sandbox.network.strict_allowlist.as_ref());
        self.flag("sandbox.allowUnsandboxedCommands", sandbox.allow_unsandboxed_commands.as_ref());
        self.texts("disabledMcpjsonServers", &settings.disabled_mcpjson_servers);
        self.flag("disableAllHooks", settings.disable_all_hooks.as_ref());
        self.flag("allowManagedHooksOnly", settings.allow_managed_hooks_only.as_ref());
        self.flag("allowManagedPermissionRulesOnly", settings.allow_managed_permission_rules_only.as_ref());
        self.without_effect();
        for key in &settings.other_keys {
            let note = match key.status {
                KeyStatus::Known { .. } => NO_EFFECT.to_owned(),
                KeyStatus::Unknown { nearest: None } => "there is no such key".to_owned(),
                KeyStatus::Unknown { nearest: Some(near) } => format!("there is no such key; {near}?"),
            };
            self.add_noted(&key.name, key.line, Value::Null, &note);
        }
        self.settings
    }

    /// What is read and not applied.
    fn without_effect(&mut self) {
        let settings = &self.file.settings;
        let flag = |flag: Option<&Located<bool>>| flag.map(|flag| (flag.line, flag.value.into()));
        let first =
            |texts: &[Located<String>]| texts.first().map(|text| (text.line, text.value.clone().into()));
        let number = |number: &Located<u64>| (number.line, number.value.into());
        let values: [(&str, Option<(usize, Value)>); 7] = [
            ("model", settings.model.as_ref().map(|model| (model.line, model.value.clone().into()))),
            ("fallbackModel", first(&settings.fallback_model)),
            ("enabledMcpjsonServers", first(&settings.enabled_mcpjson_servers)),
            ("enableAllProjectMcpServers", flag(settings.enable_all_project_mcp_servers.as_ref())),
            ("bashOutputMaxChars", settings.bash_output_max_chars.as_ref().map(number)),
            ("claudeMdExcludes", first(&settings.claude_md_excludes)),
            ("autoMemoryEnabled", flag(settings.auto_memory_enabled.as_ref())),
        ];
        for (name, value) in values {
            if let Some((line, value)) = value {
                self.add_noted(name, line, value, NO_EFFECT);
            }
        }
    }

    fn hooks(&mut self) {
        for event in &self.file.settings.hooks.events {
            for group in &event.groups {
                for handler in &group.handlers {
                    let HookAction::Command { command, arguments } = &handler.value.action else { continue };
                    let words = std::iter::once(command).chain(arguments.iter().flatten());
                    let words = words.cloned().collect::<Vec<_>>().join(" ");
                    let value = json!({"matcher": group.matcher.value.text(), "command": words});
                    self.add(&format!("hooks.{}", event.event.value.name()), handler.line, value);
                }
            }
        }
    }

    fn rules(&mut self, name: &str, rules: &[Located<SettingsRule>]) {
        for rule in rules {
            self.add(name, rule.line, rule.value.rule.clone().into());
        }
    }

    fn texts(&mut self, name: &str, texts: &[Located<String>]) {
        for text in texts {
            self.add(name, text.line, text.value.clone().into());
        }
    }

    fn flag(&mut self, name: &str, flag: Option<&Located<bool>>) {
        if let Some(flag) = flag {
            self.add(name, flag.line, flag.value.into());
        }
    }

    fn add(&mut self, name: &str, line: usize, value: Value) {
        let origin = format!("{}:{line}", self.file.origin);
        self.settings.push(Setting { name: name.to_owned(), value, origin });
    }

    fn add_noted(&mut self, name: &str, line: usize, value: Value, note: &str) {
        let origin = format!("{}:{line} ({note})", self.file.origin);
        self.settings.push(Setting { name: name.to_owned(), value, origin });
    }
}
