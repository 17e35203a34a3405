//! The one function that decides.

use std::path::Path;
use std::sync::Arc;

use haft_tool::{Decision, Effect, Reach, Reads, Sandbox, Scope, Verdict};

use crate::access::{is_unreadable_secret, secret_reason};
use crate::command::EffectView;
use crate::guard::guard_in;
use crate::places::{leads_out, needs_a_grant};
use crate::rule::{Behavior, OTHER_SESSIONS, PathUse, Rule, UNSANDBOXED};
use crate::tables::ASKED_SETTINGS;
use crate::{Mode, Rules, command_standing, reach};

/// What is in force for a session.
#[derive(Debug, Clone)]
pub struct Policy {
    /// How much runs without a question.
    pub mode: Mode,
    /// The rules.
    pub rules: Rules,
    /// What a call may touch without any grant.
    pub scope: Arc<Scope>,
    /// Whether what commands change can be undone: they are sandboxed and witnessed.
    pub commands_reversible: bool,
    /// Whether the user made the request in person, so that no question is needed and calls of any session may be undone.
    pub user_request: bool,
}

impl Policy {
    /// The policy for an undo that the user asked for in person: it may go wherever a recorded call has been, and is not
    /// asked about again. Deny rules and protected paths hold.
    #[must_use]
    pub fn for_user_request(&self) -> Self {
        let everywhere = || vec!["/".into()];
        let scope = Scope {
            reads: Reads::Everywhere,
            blocked: Vec::new(),
            unguarded: everywhere(),
            readable: everywhere(),
            ..(*self.scope).clone()
        };
        Self { mode: Mode::Scoped, scope: Arc::new(scope), user_request: true, ..self.clone() }
    }
}

impl Policy {
    /// The policy for the commands of hooks, which the user configured: in every mode they run in the session's scope, and rules
    /// speak of the model's calls.
    #[must_use]
    pub fn for_hook(&self) -> Self {
        Self { mode: Mode::Scoped, rules: Rules::default(), ..self.clone() }
    }
}

/// The part of a call that policy uses.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// What it will touch.
    pub effects: &'a [Effect],
}

/// The decision: what the call may touch, or why it may not run.
#[derive(Debug, Clone)]
pub enum Decided {
    /// Run it inside this scope.
    Allow(Arc<Scope>, Decision),
    /// Ask; if the answer is yes, run it inside this scope.
    Ask(Arc<Scope>, Decision),
    /// Do not run it.
    Deny(Decision),
}

/// Decides. Pure and total: deny rules first, then what is protected or blocked, then ask rules, then the mode.
pub fn decide(request: Request<'_>, policy: &Policy) -> Decided {
    let Request { tool, effects } = request;
    let views = EffectView::all(effects);
    if let Some(rule) = policy.rules.any(Behavior::Deny, tool, &views) {
        return deny(format!("{tool} is denied by a rule"), Some(rule));
    }
    for path in effects.iter().filter_map(path_of) {
        if policy.scope.is_protected(path) {
            let why = format!(
                "{} is protected: tools do not touch Haft's ledger and configuration",
                path.display()
            );
            return deny(why, None);
        }
    }
    for view in &views {
        if let Effect::Write { path } = view.effect
            && policy.scope.is_write_blocked(path)
            && policy.rules.granting(tool, view).is_none()
        {
            let why = format!("writes to {} are denied: it is blocked, and no rule names it", path.display());
            return deny(why, None);
        }
    }
    for view in &views {
        if let Some(why) = needs_a_rule(tool, view.effect, policy)
            && !policy.user_request
            && policy.rules.granting(tool, view).is_none()
        {
            return deny(why, None);
        }
    }
    let mutates = |view: &EffectView<'_>| match view.effect {
        Effect::Run { .. } => !command_standing::only_reads(view, policy),
        effect => effect.mutates(),
    };
    // An agent's own calls are decided one by one, in a mode that allows no more than this one.
    let may_change = |view: &EffectView<'_>| !matches!(view.effect, Effect::Spawn { .. }) && mutates(view);
    if policy.mode == Mode::Plan && views.iter().any(may_change) {
        return deny(format!("{tool} would change something, and in plan mode nothing may change"), None);
    }

    let asked = policy.rules.any(Behavior::Ask, tool, &views).filter(|_| !policy.user_request);
    let mut scope = narrowed(&policy.scope, effects, reach::of(tool, effects, policy));
    keep_from_paths(&mut scope, tool, &views, policy);
    let mut reasons: Vec<String> = asked.iter().map(|_| format!("a rule asks before {tool}")).collect();
    let mut allowed_by: Option<&Rule> = None;
    for view in &views {
        match standing(tool, view, policy) {
            Standing::Fine => {}
            Standing::Ruled(rule) => allowed_by = allowed_by.or(Some(rule)),
            Standing::Ask(why) if reasons.contains(&why) => {}
            Standing::Ask(why) => reasons.push(why),
        }
        match view.effect {
            Effect::Read { path } | Effect::Write { path } => {
                if needs_a_grant(tool, view, policy) {
                    Arc::make_mut(&mut scope).grants.push(path.clone());
                }
                if matches!(view.effect, Effect::Write { .. }) && guard_in(&scope, path).is_some() {
                    Arc::make_mut(&mut scope).unguarded.push(path.clone());
                }
                if is_unreadable_secret(&scope, path) {
                    Arc::make_mut(&mut scope).readable.push(path.clone());
                }
            }
            Effect::Configure { .. } => open_config(Arc::make_mut(&mut scope)),
            Effect::Unsandboxed => Arc::make_mut(&mut scope).sandbox = Sandbox::Off,
            _ => {}
        }
    }
    let question = (!reasons.is_empty()).then(|| (reasons.join("; "), asked));
    match (question, policy.mode) {
        (None, _) => {
            let reason = match allowed_by {
                Some(_) => "a rule allows it".to_owned(),
                None if !views.iter().any(mutates) => "it changes nothing".to_owned(),
                None if policy.user_request => "the user requested it".to_owned(),
                None if policy.mode == Mode::BypassPermissions => "it is inside the scope".to_owned(),
                None => "it is inside the scope and can be undone".to_owned(),
            };
            Decided::Allow(scope, decision(Verdict::Allow, reason, allowed_by))
        }
        (Some((why, rule)), mode @ (Mode::DontAsk | Mode::BypassPermissions)) => {
            deny(format!("{why}, and in {mode} mode no question is asked"), rule)
        }
        (Some((why, rule)), _) => Decided::Ask(scope, decision(Verdict::Ask, why, rule)),
    }
}

/// Why an effect needs a rule of the user that names it, in every mode; an answer to a question does not replace the rule.
fn needs_a_rule(tool: &str, effect: &Effect, policy: &Policy) -> Option<String> {
    match effect {
        Effect::Undo { call, own_session: false, .. } => Some(format!(
            "call {call} was made in another session; the rule {tool}({OTHER_SESSIONS}) allows that"
        )),
        // Several settings at once: an undo restores the file.
        Effect::Configure { setting, .. } if setting == "*" => Some(
            "it would change the settings, which say what later calls may do. Only the user may".to_owned(),
        ),
        Effect::Configure { setting, .. } if !ASKED_SETTINGS.contains(&setting.as_str()) => Some(format!(
            "the setting {setting} says what later calls may do, and no rule names it. To allow it: \
             --allowedTools '{tool}({setting})'"
        )),
        Effect::Unsandboxed if policy.scope.sandbox == Sandbox::On => Some(format!(
            "the command would run without the sandbox, what it changes could not be undone, and no rule allows it. To \
             allow it: --allowedTools '{tool}({UNSANDBOXED})'"
        )),
        _ => None,
    }
}

/// Takes the paths out of the scope that rules deny, or ask about where the call's own paths gave no reason to ask.
fn keep_from_paths(scope: &mut Arc<Scope>, tool: &str, views: &[EffectView<'_>], policy: &Policy) {
    let withheld = |path_use, is_used: bool| {
        let paths = || policy.rules.withheld_paths(tool, views, path_use, policy.user_request);
        is_used.then(paths).unwrap_or_default()
    };
    let has = |of: fn(&Effect) -> bool| views.iter().any(|view| of(view.effect));
    let reads = has(|effect| matches!(effect, Effect::Read { .. } | Effect::Run { .. }));
    let writes = has(|effect| matches!(effect, Effect::Write { .. } | Effect::Run { .. }));
    let (unreadable, unwritable) = (withheld(PathUse::Read, reads), withheld(PathUse::Write, writes));
    if !unreadable.is_empty() || !unwritable.is_empty() {
        let scope = Arc::make_mut(scope);
        (scope.unreadable, scope.unwritable) = (unreadable, unwritable);
    }
}

/// Whether one effect may happen, before ask rules and deny rules.
pub(crate) enum Standing<'a> {
    Fine,
    Ruled(&'a Rule),
    Ask(String),
}

pub(crate) fn standing<'a>(tool: &str, view: &EffectView<'_>, policy: &'a Policy) -> Standing<'a> {
    // Runs what the sandbox and the user's configuration confine; never widens the scope.
    let bypass = policy.mode == Mode::BypassPermissions;
    match view.effect {
        Effect::Read { path } => read_standing(tool, view, path, policy),
        // These stay inside the session.
        Effect::Inspect { .. } | Effect::Ask | Effect::Note { .. } | Effect::StopTask { .. } => {
            Standing::Fine
        }
        _ if policy.user_request => Standing::Fine,
        // Other sessions are denied above, and each write of an undo is an effect of its own.
        Effect::Undo { .. } => Standing::Fine,
        // So are writes in a dialect that has nothing outside its roots.
        Effect::Write { .. } if leads_out(tool, view, policy) => Standing::Fine,
        Effect::Write { path } => {
            if let Some(guard) = guard_in(&policy.scope, path) {
                return match policy.rules.granting(tool, view) {
                    Some(rule) => Standing::Ruled(rule),
                    None => Standing::Ask(format!("{}: {}", path.display(), guard.reason())),
                };
            }
            if policy.scope.root_of(path).is_none() || policy.scope.is_write_blocked(path) {
                // Naming the tool is not naming the path: only a rule with a path widens the scope.
                match policy.rules.granting(tool, view) {
                    // A file of the tool's own is inside its scope; the mode decides.
                    Some(rule) if rule.is_of_dialect() => {}
                    Some(rule) => return Standing::Ruled(rule),
                    None => return Standing::Ask(format!("{} is outside the workspace", path.display())),
                }
            }
            match (policy.mode, policy.rules.allowing(tool, view)) {
                (Mode::Scoped | Mode::AcceptEdits | Mode::BypassPermissions, _) => Standing::Fine,
                (_, Some(rule)) => Standing::Ruled(rule),
                (_, None) => Standing::Ask(format!("it would change {}", path.display())),
            }
        }
        Effect::Run { command } => command_standing::standing(tool, view, command, policy),
        Effect::Reach { host } => reach::standing(tool, view, host, policy),
        // Naming the tool is not enough here either.
        Effect::Configure { setting, .. } => match policy.rules.granting(tool, view) {
            Some(rule) => Standing::Ruled(rule),
            None => Standing::Ask(format!("it would change the setting {setting}")),
        },
        // Without a rule it is denied above.
        Effect::Unsandboxed => policy.rules.granting(tool, view).map_or(Standing::Fine, Standing::Ruled),
        Effect::Serve { server, reaches, .. } => match policy.rules.allowing(tool, view) {
            Some(rule) => Standing::Ruled(rule),
            None if bypass => Standing::Fine,
            // What it does stays inside the scope that it is held to.
            None if policy.mode == Mode::Scoped && !reaches => Standing::Fine,
            None => Standing::Ask(format!("it would have the server {server} do something")),
        },
        Effect::Send { channel } => match policy.rules.allowing(tool, view) {
            Some(rule) => Standing::Ruled(rule),
            None if bypass => Standing::Fine,
            None => Standing::Ask(format!("it would send a message by {channel}")),
        },
        Effect::Spawn { agent } => match policy.rules.allowing(tool, view) {
            Some(rule) => Standing::Ruled(rule),
            None if bypass || matches!(policy.mode, Mode::Scoped | Mode::Plan) => Standing::Fine,
            None => Standing::Ask(format!("it would start the agent {agent}")),
        },
    }
}

/// Whether a path may be read. Reads outside the roots are refused by the World itself, in the words of the dialect.
fn read_standing<'a>(tool: &str, view: &EffectView<'_>, path: &Path, policy: &'a Policy) -> Standing<'a> {
    let scope = &policy.scope;
    let reachable = scope.reads == Reads::Everywhere || scope.root_of(path).is_some();
    if policy.user_request || !reachable || !is_unreadable_secret(scope, path) {
        return Standing::Fine;
    }
    match policy.rules.granting(tool, view) {
        Some(rule) => Standing::Ruled(rule),
        None => Standing::Ask(secret_reason(path)),
    }
}

/// The scope with only the rights that the call needs. Calls that only read share the session's scope, because copying one
/// costs more than reading a file.
fn narrowed(scope: &Arc<Scope>, effects: &[Effect], reach: Reach) -> Arc<Scope> {
    let writes = effects.iter().any(|effect| matches!(effect, Effect::Write { .. }));
    let runs = effects.iter().any(|effect| matches!(effect, Effect::Run { .. }));
    let mut scope = Arc::clone(scope);
    if (scope.writes, scope.runs, &scope.reach) != (writes, runs, &reach) {
        let scope = Arc::make_mut(&mut scope);
        (scope.writes, scope.runs, scope.reach) = (writes, runs, reach);
    }
    scope
}

/// Lets the call write the user's settings, which nothing else may touch.
fn open_config(scope: &mut Scope) {
    if let Some(file) = scope.config.clone() {
        scope.protected.retain(|protected| *protected != file);
        scope.grants.push(file.clone());
        scope.unguarded.push(file);
        scope.writes = true;
    }
}

fn path_of(effect: &Effect) -> Option<&Path> {
    match effect {
        Effect::Read { path } | Effect::Write { path } => Some(path),
        _ => None,
    }
}

fn deny(reason: String, rule: Option<&Rule>) -> Decided {
    Decided::Deny(decision(Verdict::Deny, reason, rule))
}

fn decision(verdict: Verdict, reason: String, rule: Option<&Rule>) -> Decision {
    Decision::new(verdict, reason, rule.map(Rule::cite))
}
