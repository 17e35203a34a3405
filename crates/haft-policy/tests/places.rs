//! What is blocked, what a dialect is held to, and what a rule opens.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use haft_policy::{Behavior, Decided, Mode, Policy, Preset, Request, Rule, RuleTools, Rules, decide};
use haft_tool::{Effect, Reads, Scope};

fn policy(mode: Mode, rules: &[Rule], scope: Scope) -> Policy {
    let mut all = Rules::default();
    rules.iter().cloned().for_each(|rule| all.push(rule));
    Policy { mode, rules: all, scope: scope.into(), commands_reversible: true, user_request: false }
}

fn rule(text: &str) -> Rule {
    Rule::parse(Behavior::Allow, text, "test:1", Path::new("/w"), &RuleTools::default()).unwrap()
}

fn write(path: &str) -> Effect {
    Effect::Write { path: path.into() }
}

/// The paths that are opened, if the call may run.
fn grants(tool: &str, effect: Effect, policy: &Policy) -> Result<Vec<String>, String> {
    match decide(Request { tool, effects: &[effect] }, policy) {
        Decided::Allow(scope, _) => Ok(scope.grants.iter().map(|path| path.display().to_string()).collect()),
        Decided::Ask(_, decision) | Decided::Deny(decision) => Err(decision.reason),
    }
}

#[test]
fn the_blocklist_holds_in_every_mode_until_a_rule_names_the_path() {
    for (mode, preset) in
        Mode::ALL.into_iter().zip([Preset::Sandbox, Preset::Rx, Preset::Rwx].into_iter().cycle())
    {
        let scope = preset.apply(Scope::of("/w"));
        let said = grants("write", write("/etc/passwd"), &policy(mode, &[rule("write")], scope.clone()));
        let expected = "writes to /etc/passwd are denied: it is blocked, and no rule names it";
        assert_eq!(said, Err(expected.to_owned()), "{mode} {preset}");
        if mode != Mode::Plan {
            let named = policy(mode, &[rule("write(//etc/passwd)")], scope);
            assert_eq!(grants("write", write("/etc/passwd"), &named), Ok(vec!["/etc/passwd".to_owned()]));
            assert!(grants("write", write("/etc/shadow"), &named).is_err());
        }
    }
}

#[test]
fn rwx_writes_elsewhere_without_a_question() {
    let rwx = policy(Mode::Scoped, &[], Preset::Rwx.apply(Scope::of("/w")));
    assert_eq!(grants("write", write("/srv/a"), &rwx), Ok(vec![]));
    assert!(grants("write", write("/srv/a"), &policy(Mode::Scoped, &[], Scope::of("/w"))).is_err());
}

#[test]
fn a_dialect_that_is_held_to_its_roots_leaves_the_refusal_to_the_world() {
    let held = Scope { reads: Reads::Roots, ..Scope::of("/w") };
    for mode in [Mode::Scoped, Mode::Default, Mode::BypassPermissions] {
        assert_eq!(
            grants("write_file", write("/srv/a"), &policy(mode, &[], held.clone())),
            Ok(vec![]),
            "{mode}"
        );
    }
    let named = policy(Mode::Scoped, &[rule("write_file(//srv/*)")], held);
    assert_eq!(grants("write_file", write("/srv/a"), &named), Ok(vec!["/srv/a".to_owned()]));
    assert_eq!(grants("edit_file", write("/srv/a"), &named), Ok(vec![]), "the rule names another tool");
}

#[test]
fn a_grant_opens_one_path_for_one_tool_to_read_and_to_write() {
    let held = Scope { reads: Reads::Roots, ..Scope::of("/w") };
    let grant = Rule::grant("memory", Path::new("/home/u/a[1]*.md"), "settings").unwrap();
    assert_eq!(grant.cite(), "memory(//home/u/a[1]*.md) (settings)");
    let policy = policy(Mode::DontAsk, &[grant], held);
    let read = |path: &str| Effect::Read { path: path.into() };
    let path = "/home/u/a[1]*.md";
    assert_eq!(grants("memory", write(path), &policy), Ok(vec![path.to_owned()]));
    assert_eq!(grants("memory", read(path), &policy), Ok(vec![path.to_owned()]));
    assert_eq!(grants("memory", read("/home/u/a1x.md"), &policy), Ok(vec![]));
    assert_eq!(grants("other", read(path), &policy), Ok(vec![]));
}

#[test]
fn a_rule_of_any_dialect_speaks_of_paths_or_of_commands_as_the_effect_tells() {
    let run = |command: &str| Effect::Run { command: command.into() };
    let policy = policy(Mode::Default, &[rule("bash(git *)"), rule("write_file(src/**)")], Scope::of("/w"));
    assert!(grants("bash", run("git status"), &policy).is_ok());
    assert!(grants("bash", run("rm x"), &policy).is_err());
    assert!(grants("write_file", write("/w/src/a.rs"), &policy).is_ok());
    assert!(grants("write_file", write("/w/a.rs"), &policy).is_err());
}
