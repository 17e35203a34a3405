//! What of the files is in force.

use std::path::{Path, PathBuf};

use haft_compat::hooks::OnFailure;
use haft_compat::settings::{DefaultMode, HookAction, HookHandler, Located, SettingsRule};
use haft_policy::{Behavior, Mode, RuleText};
use haft_tool::ToolError;

use super::server_limits::ServerLimits;
use super::{ClaudeFile, ClaudeFiles, ConfiguredHooks, ProjectTrust, SettingsLayer};

/// Tools whose specifier is a path.
const PATH_TOOLS: [&str; 7] = ["Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "Grep", "Glob"];

/// How rules about Haft's tools over MCP begin.
const HAFT_TOOLS: &str = "mcp__haft";

/// A rule and where it is.
#[derive(Debug, Clone)]
pub(crate) struct ClaudeRule {
    pub(crate) behavior: Behavior,
    pub(crate) rule: RuleText,
    pub(crate) origin: String,
    /// Whose file it is in.
    layer: SettingsLayer,
}

impl ClaudeRule {
    /// Whether it takes a tool of Claude Code away as a whole.
    fn is_about_client(&self) -> bool {
        let text = &self.rule.text;
        self.behavior != Behavior::Allow && !text.contains('(') && !text.starts_with("mcp__")
    }
}

/// What of the files is in force.
#[derive(Default)]
pub(crate) struct Effective {
    pub(crate) rules: Vec<ClaudeRule>,
    pub(crate) mode: Option<Mode>,
    /// Whether `bypassPermissions` is forbidden.
    pub(crate) no_bypass: bool,
    /// Directories that calls may change.
    pub(crate) directories: Vec<PathBuf>,
    /// Further paths that commands may write.
    pub(crate) writable: Vec<PathBuf>,
    /// Hosts that commands may reach.
    pub(crate) domains: Vec<String>,
    /// Whether other hosts are refused without a question.
    pub(crate) is_strict_network: bool,
    /// Variables for commands, as `NAME=VALUE`.
    pub(crate) variables: Vec<String>,
    pub(crate) hooks: ConfiguredHooks,
    /// Which MCP servers may run.
    pub(crate) servers: ServerLimits,
    /// Whether reads are confined to the workspace.
    pub(crate) reads_workspace: bool,
    /// Whether what would be asked is denied.
    pub(crate) asks_nobody: bool,
    pub(crate) warnings: Vec<String>,
}

impl Effective {
    /// Applies the files for calls in `workspace`.
    pub(crate) fn of(files: &ClaudeFiles, workspace: &Path, trust: &ProjectTrust) -> Result<Self, ToolError> {
        let content = project_content(files);
        let is_trusted = trust.covers(&content)?;
        let mut effective = Self { warnings: files.warnings.clone(), ..Self::default() };
        if !is_trusted {
            let count = content.len();
            let what = if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
            effective.warnings.push(format!(
                "this project's .claude/settings.json allows calls, runs hooks or sets variables ({what}); none of that is in \
                 force. To look at it and trust it: haft trust"
            ));
        }
        let managed_only = |key: fn(&ClaudeFile) -> Option<&Located<bool>>| {
            files.files.iter().any(|file| file.layer == SettingsLayer::Managed && is_set(key(file)))
        };
        let only_managed_rules =
            managed_only(|file| file.settings.allow_managed_permission_rules_only.as_ref());
        let only_managed_hooks = managed_only(|file| file.settings.allow_managed_hooks_only.as_ref());
        let no_hooks = files.files.iter().any(|file| {
            // A project cannot turn off the user's guards.
            file.layer.is_own() && is_set(file.settings.disable_all_hooks.as_ref())
        });
        for file in &files.files {
            let is_managed = file.layer == SettingsLayer::Managed;
            let widens = file.layer.is_own() || is_trusted;
            if is_managed || !only_managed_rules {
                effective.add_rules(file, widens, workspace);
                effective.add_limits(file, workspace);
            }
            effective.servers.add(file);
            if widens {
                effective.add_grants(file, workspace);
                if !no_hooks && (is_managed || !only_managed_hooks) {
                    effective.hooks.add(&file.settings.hooks, &file.origin);
                }
            }
        }
        let allows_haft =
            |rule: &ClaudeRule| rule.behavior == Behavior::Allow && rule.rule.text.starts_with(HAFT_TOOLS);
        if effective.rules.iter().any(|rule| rule.layer.is_own() && allows_haft(rule)) {
            effective.drop_rules_of_client();
        } else if effective.rules.iter().any(allows_haft) {
            // A project drops its own rules only.
            effective.rules.retain(|rule| rule.layer.is_own() || !rule.is_about_client());
        }
        Ok(effective)
    }

    /// Drops rules that take tools away as a whole. Where Claude Code uses Haft's tools over MCP, they are about its own tools, in whose
    /// place Haft's are; for Haft's it has rules with other names. Those of the administrator stay.
    pub(crate) fn drop_rules_of_client(&mut self) {
        self.rules.retain(|rule| rule.layer == SettingsLayer::Managed || !rule.is_about_client());
    }

    fn add_rules(&mut self, file: &ClaudeFile, widens: bool, workspace: &Path) {
        let permissions = &file.settings.permissions;
        let lists = [
            (Behavior::Deny, &permissions.deny),
            (Behavior::Ask, &permissions.ask),
            (Behavior::Allow, &permissions.allow),
        ];
        for (behavior, rules) in lists {
            if behavior != Behavior::Allow || widens {
                self.rules.extend(rules.iter().map(|rule| written(behavior, rule, file, workspace)));
            }
        }
        let sandbox = &file.settings.sandbox;
        let denied = sandbox.filesystem.deny_write.iter().map(|path| ("Edit", path));
        let denied = denied.chain(sandbox.filesystem.deny_read.iter().map(|path| ("Read", path)));
        for (tool, path) in denied {
            let rule = path.with(SettingsRule::new(format!("{tool}({})", sandbox_path(&path.value))));
            self.rules.push(written(Behavior::Deny, &rule, file, workspace));
        }
        for domain in &sandbox.network.denied_domains {
            let rule = domain.with(SettingsRule::new(format!("WebFetch(domain:{})", domain.value)));
            self.rules.push(written(Behavior::Deny, &rule, file, workspace));
        }
        for secret in &sandbox.credentials.files {
            let rule = secret.with(SettingsRule::new(format!("Read({})", sandbox_path(&secret.value.path))));
            self.rules.push(written(Behavior::Deny, &rule, file, workspace));
        }
        self.no_bypass |= permissions.disable_bypass_permissions_mode.as_ref().is_some_and(|flag| flag.value);
    }

    /// Adds what holds commands in the sandbox.
    fn add_limits(&mut self, file: &ClaudeFile, workspace: &Path) {
        let sandbox = &file.settings.sandbox;
        self.is_strict_network |= is_set(sandbox.network.strict_allowlist.as_ref());
        let permissions = &file.settings.permissions;
        self.reads_workspace |= is_set(permissions.block_reads_outside_working_directories.as_ref());
        self.asks_nobody |= is_set(permissions.deny_instead_of_prompting.as_ref());
        let denies = sandbox.allow_unsandboxed_commands.as_ref().filter(|flag| !flag.value);
        if let Some(flag) = denies {
            let rule = flag.with(SettingsRule::new("Bash(unsandboxed)".to_owned()));
            self.rules.push(written(Behavior::Deny, &rule, file, workspace));
        }
    }

    fn add_grants(&mut self, file: &ClaudeFile, workspace: &Path) {
        let permissions = &file.settings.permissions;
        if let (None, Some(mode)) = (self.mode, &permissions.default_mode) {
            self.mode = Some(mode_of(mode.value));
        }
        let directories = permissions.additional_directories.iter();
        self.directories.extend(directories.map(|path| expanded(&path.value, workspace)));
        let writable = file.settings.sandbox.filesystem.allow_write.iter();
        self.writable.extend(writable.map(|path| expanded(&path.value, workspace)));
        let domains = file.settings.sandbox.network.allowed_domains.iter();
        self.domains.extend(domains.map(|domain| domain.value.clone()));
        let variables = file.settings.env.iter();
        self.variables
            .extend(variables.map(|variable| format!("{}={}", variable.name, variable.value.value)));
    }
}

/// Everything in a project's files that would widen what calls may do or run programs, one line each: what is shown to the user
/// is what the user trusts.
pub(crate) fn project_content(files: &ClaudeFiles) -> Vec<String> {
    let mut content = Vec::new();
    for file in files.files.iter().filter(|file| !file.layer.is_own()) {
        let settings = &file.settings;
        content.extend(settings.permissions.allow.iter().map(|rule| format!("allows {}", rule.value.rule)));
        let mode = settings.permissions.default_mode.iter();
        content.extend(mode.map(|mode| format!("sets the mode {}", mode_of(mode.value))));
        let directories = settings.permissions.additional_directories.iter();
        content.extend(directories.map(|path| format!("lets calls change {}", path.value)));
        let writable = settings.sandbox.filesystem.allow_write.iter();
        content.extend(writable.map(|path| format!("lets commands write {}", path.value)));
        let domains = settings.sandbox.network.allowed_domains.iter();
        content.extend(domains.map(|domain| format!("lets commands reach {}", domain.value)));
        let variables = settings.env.iter();
        content.extend(variables.map(|it| format!("sets {}={} for commands", it.name, it.value.value)));
        for event in &settings.hooks.events {
            for group in &event.groups {
                let matcher = group.matcher.value.text();
                for handler in &group.handlers {
                    let HookAction::Command { command, arguments } = &handler.value.action else { continue };
                    // With arguments no shell is involved.
                    let what = match arguments {
                        None => command.clone(),
                        Some(words) => {
                            format!("{:?}", std::iter::once(command).chain(words).collect::<Vec<_>>())
                        }
                    };
                    let (event, options) = (event.event.value.name(), hook_options(&handler.value));
                    content.push(format!("runs on {event} ({matcher:?}){options}: {what}"));
                }
            }
        }
    }
    content
}

/// What changes when a hook runs, and what its result is worth.
fn hook_options(handler: &HookHandler) -> String {
    let HookHandler { timeout, condition, is_async, once, on_failure, .. } = handler;
    let options = [
        condition.as_ref().map(|condition| format!("if {:?}", condition.value)),
        is_async.then(|| "in the background".to_owned()),
        once.then(|| "once".to_owned()),
        timeout.map(|timeout| format!("for at most {} s", timeout.as_secs_f32())),
        on_failure.map(|on_failure| match on_failure {
            OnFailure::Block => "a failure blocks".to_owned(),
            OnFailure::Continue => "a failure is ignored".to_owned(),
        }),
    ];
    options.into_iter().flatten().fold(String::new(), |all, option| all + ", " + &option)
}

fn is_set(flag: Option<&Located<bool>>) -> bool {
    flag.is_some_and(|flag| flag.value)
}

fn written(
    behavior: Behavior,
    rule: &Located<SettingsRule>,
    file: &ClaudeFile,
    workspace: &Path,
) -> ClaudeRule {
    let words = |list: &[Located<String>]| list.iter().map(|word| word.value.clone()).collect();
    ClaudeRule {
        behavior,
        rule: RuleText {
            text: from_root(&rule.value.rule, &file.root, workspace),
            matches: words(&rule.value.matches),
            not_matches: words(&rule.value.does_not_match),
        },
        origin: format!("{}:{}", file.origin, rule.line),
        layer: file.layer,
    }
}

/// The rule with a path that begins with one slash as an absolute one: it is relative to the place of the file.
fn from_root(rule: &str, root: &Path, workspace: &Path) -> String {
    let Some((tool, rest)) = rule.split_once('(') else { return rule.to_owned() };
    let is_anchored = rest.starts_with('/') && !rest.starts_with("//");
    if !is_anchored || root == workspace || !PATH_TOOLS.contains(&tool.trim()) {
        return rule.to_owned();
    }
    format!("{tool}(/{}{rest}", globset::escape(&root.display().to_string()))
}

/// A path of the sandbox's settings as rules write it: one slash is the root of the disk there.
fn sandbox_path(path: &str) -> String {
    if path.starts_with('/') && !path.starts_with("//") { format!("/{path}") } else { path.to_owned() }
}

/// A path that may begin with `~` or be relative to the workspace.
fn expanded(path: &str, workspace: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => workspace.join(path),
    }
}

/// Haft's mode for one of Claude Code. It has no classifier, so `auto` is its own mode, in which the sandbox decides.
pub(super) const fn mode_of(mode: DefaultMode) -> Mode {
    match mode {
        DefaultMode::AcceptEdits => Mode::AcceptEdits,
        DefaultMode::BypassPermissions => Mode::BypassPermissions,
        DefaultMode::Plan => Mode::Plan,
        DefaultMode::DontAsk => Mode::DontAsk,
        DefaultMode::Auto | DefaultMode::Scoped => Mode::Scoped,
        _ => Mode::Default,
    }
}
