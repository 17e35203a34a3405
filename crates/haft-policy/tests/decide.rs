//! Each row of the table is a promise of `decide`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use haft_policy::{Behavior, Decided, Mode, Policy, Request, Rule, RuleTools, Rules, decide};
use haft_tool::{Effect, Scope};

fn policy(mode: Mode, rules: &[(Behavior, &str)]) -> Policy {
    let mut all = Rules::default();
    for (behavior, text) in rules {
        all.push(Rule::parse(*behavior, text, "test:1", Path::new("/w"), &RuleTools::default()).unwrap());
    }
    let scope = Scope { protected: vec!["/state/haft".into()], ..Scope::of("/w") };
    Policy { mode, rules: all, scope: scope.into(), commands_reversible: false, user_request: false }
}

fn write(path: &str) -> Effect {
    Effect::Write { path: path.into() }
}
fn read(path: &str) -> Effect {
    Effect::Read { path: path.into() }
}
fn run(command: &str) -> Effect {
    Effect::Run { command: command.into() }
}

fn verdict(tool: &str, effect: Effect, policy: &Policy) -> String {
    match decide(Request { tool, effects: &[effect] }, policy) {
        Decided::Allow(_, d) => {
            format!("allow: {}{}", d.reason, d.rule.map(|r| format!(" [{r}]")).unwrap_or_default())
        }
        Decided::Ask(_, d) => {
            format!("ask: {}{}", d.reason, d.rule.map(|r| format!(" [{r}]")).unwrap_or_default())
        }
        Decided::Deny(d) => {
            format!("deny: {}{}", d.reason, d.rule.map(|r| format!(" [{r}]")).unwrap_or_default())
        }
    }
}

#[test]
fn scoped_runs_what_is_inside_and_reversible_and_asks_for_the_rest() {
    let policy = policy(Mode::Scoped, &[]);
    assert_eq!(verdict("Write", write("/w/a"), &policy), "allow: it is inside the scope and can be undone");
    assert_eq!(verdict("Read", read("/etc/hosts"), &policy), "allow: it changes nothing");
    assert_eq!(verdict("Write", write("/etc/hosts"), &policy), "ask: /etc/hosts is outside the workspace");
    assert_eq!(verdict("Write", write("/w-evil/a"), &policy), "ask: /w-evil/a is outside the workspace");
    assert!(verdict("Bash", run("ls"), &policy).starts_with("ask: what a command changes cannot be undone"));
    let reversible = Policy { commands_reversible: true, ..policy };
    assert!(verdict("Bash", run("ls"), &reversible).starts_with("allow"));
}

#[test]
fn the_ledger_is_protected_in_every_mode() {
    for mode in Mode::ALL {
        let policy = policy(mode, &[(Behavior::Allow, "Read"), (Behavior::Allow, "Edit(//**)")]);
        assert!(verdict("Read", read("/state/haft/ledger.db"), &policy).starts_with("deny"), "{mode}");
        assert!(verdict("Write", write("/state/haft/x"), &policy).starts_with("deny"), "{mode}");
    }
}

#[test]
fn a_deny_rule_beats_everything_and_is_cited() {
    let policy =
        policy(Mode::BypassPermissions, &[(Behavior::Allow, "Read"), (Behavior::Deny, "Read(.env*)")]);
    assert_eq!(
        verdict("Read", read("/w/sub/.env.local"), &policy),
        "deny: Read is denied by a rule [Read(.env*) (test:1)]"
    );
    assert_eq!(
        verdict("Grep", read("/w/sub/.env.local"), &policy),
        "deny: Grep is denied by a rule [Read(.env*) (test:1)]"
    );
    assert!(verdict("Read", read("/w/sub/env"), &policy).starts_with("allow"));
}

#[test]
fn path_rules_cover_every_tool_that_reads_or_writes() {
    let rules = [(Behavior::Deny, "Edit(p/**)"), (Behavior::Deny, "Read(.env)")];
    let policy = policy(Mode::Scoped, &rules);
    for tool in ["write_file", "edit_file", "write", "Bash", "haft_undo"] {
        assert!(verdict(tool, write("/w/p/a"), &policy).starts_with("deny"), "{tool}");
        assert!(verdict(tool, write("/w/q"), &policy).starts_with("allow"), "{tool}");
    }
    for tool in ["read_file", "read", "resources/read", "list_files"] {
        assert!(verdict(tool, read("/w/sub/.env"), &policy).starts_with("deny"), "{tool}");
        assert!(verdict(tool, read("/w/p/a"), &policy).starts_with("allow"), "{tool}");
    }
}

#[test]
fn dots_and_other_names_in_path_rules_are_understood() {
    for (rule, path) in [
        ("Edit(sub/../f)", "/w/f"),
        ("Edit(../w/f)", "/w/f"),
        ("Edit(./a/./b/)", "/w/a/b/c"),
        ("Edit(../other/**)", "/other/f"),
        ("Edit(.)", "/w/f"),
        ("Edit(//)", "/etc/hosts"),
        ("MultiEdit(f)", "/w/sub/f"),
    ] {
        let policy = policy(Mode::Scoped, &[(Behavior::Deny, rule)]);
        assert!(verdict("Write", write(path), &policy).starts_with("deny"), "{rule}");
    }
    let meaningless =
        Rule::parse(Behavior::Deny, "Edit(a/**/../b)", "here", Path::new("/w"), &RuleTools::default());
    assert!(meaningless.unwrap_err().message.contains("`..` after `**`"));
}

#[test]
fn command_and_host_rules_cover_every_tool_that_runs_or_reaches() {
    let rules = [(Behavior::Deny, "Bash(rm:*)"), (Behavior::Deny, "WebFetch(domain:evil.example)")];
    let policy = policy(Mode::Scoped, &rules);
    for tool in ["bash", "exec_shell", "spawn"] {
        assert!(verdict(tool, run("ls; rm x"), &policy).starts_with("deny"), "{tool}");
        assert!(verdict(tool, run("ls"), &policy).starts_with("ask"), "{tool}");
    }
    for tool in ["web_fetch", "oracle"] {
        assert!(verdict(tool, Effect::Reach { host: "a.evil.example".into() }, &policy).starts_with("deny"));
    }
}

#[test]
fn call_may_not_touch_what_rules_deny_below_its_path() {
    let rules = [(Behavior::Deny, "Read(p/**)"), (Behavior::Ask, "Grep(q/**)"), (Behavior::Deny, "Edit(r)")];
    let policy = policy(Mode::Scoped, &rules);
    let scope = |effect: Effect| match decide(Request { tool: "Grep", effects: &[effect] }, &policy) {
        Decided::Allow(scope, _) | Decided::Ask(scope, _) => {
            (scope.unreadable.clone(), scope.unwritable.clone())
        }
        Decided::Deny(decision) => panic!("{decision:?}"),
    };
    let owned = |globs: &[&str]| globs.iter().map(|&glob| glob.to_owned()).collect::<Vec<_>>();
    assert_eq!(scope(read("/w")), (owned(&["/w/p/**", "/w/q/**"]), Vec::new()));
    assert_eq!(scope(write("/w/a")), (Vec::new(), owned(&["**/r", "/w/q/**"])));
    assert_eq!(scope(read("/w/q/a")).0, owned(&["/w/p/**"]), "the user was asked");
}

#[test]
fn naming_a_tool_allows_it_but_does_not_widen_the_scope() {
    let named = policy(Mode::Scoped, &[(Behavior::Allow, "Bash"), (Behavior::Allow, "Write")]);
    assert!(verdict("Bash", run("ls"), &named).starts_with("allow: a rule allows it"));
    assert!(verdict("Write", write("/etc/hosts"), &named).starts_with("ask"));
    let by_path = policy(Mode::Scoped, &[(Behavior::Allow, "Edit(//etc/hosts)")]);
    match decide(Request { tool: "Write", effects: &[write("/etc/hosts")] }, &by_path) {
        Decided::Allow(scope, _) => assert_eq!(scope.grants, [Path::new("/etc/hosts")]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_modes_of_claude_mean_what_they_mean_there() {
    let at = |mode, effect| {
        let text = verdict("T", effect, &policy(mode, &[]));
        text.split(':').next().unwrap().to_owned()
    };
    assert_eq!(at(Mode::Default, write("/w/a")), "ask");
    assert_eq!(at(Mode::Default, run("ls")), "ask");
    assert_eq!(at(Mode::Default, read("/w/a")), "allow");
    assert_eq!(at(Mode::AcceptEdits, write("/w/a")), "allow");
    assert_eq!(at(Mode::AcceptEdits, run("ls")), "ask");
    assert_eq!(at(Mode::Plan, write("/w/a")), "deny");
    assert_eq!(at(Mode::Plan, run("ls")), "deny");
    assert_eq!(at(Mode::Plan, read("/w/a")), "allow");
    assert_eq!(at(Mode::DontAsk, write("/w/a")), "deny");
    assert_eq!(at(Mode::BypassPermissions, write("/w/a")), "allow");
    assert_eq!(at(Mode::BypassPermissions, run("ls")), "allow");
    assert_eq!(at(Mode::BypassPermissions, Effect::Send { channel: "slack".into() }), "allow");
}

#[test]
fn bypass_mode_refuses_what_is_outside_the_scope() {
    let bypass = policy(Mode::BypassPermissions, &[]);
    for effect in [
        write("/etc/hosts"),
        write("/w/.git/hooks/pre-commit"),
        Effect::Reach { host: "example.com".into() },
        Effect::Configure { setting: "dialect".into(), value: None },
    ] {
        let text = verdict("T", effect, &bypass);
        assert!(text.starts_with("deny: "), "{text}");
        assert!(text.ends_with("and in bypassPermissions mode no question is asked"), "{text}");
    }
    let ruled = policy(Mode::BypassPermissions, &[(Behavior::Allow, "Edit(//etc/hosts)")]);
    assert!(verdict("Write", write("/etc/hosts"), &ruled).starts_with("allow"));
    let asked = policy(Mode::BypassPermissions, &[(Behavior::Ask, "Write")]);
    assert!(verdict("Write", write("/w/a"), &asked).starts_with("deny"));
    assert!(verdict("Write", write("/etc/hosts"), &asked.for_user_request()).starts_with("allow"));
}

#[test]
fn what_widens_the_scope_needs_a_rule_that_names_it_in_every_mode() {
    for mode in Mode::ALL {
        for (tool, effect, rule) in [
            ("Config", Effect::Configure { setting: "network".into(), value: None }, "Config(network)"),
            ("Bash", Effect::Unsandboxed, "Bash(unsandboxed)"),
        ] {
            let text = verdict(tool, effect.clone(), &policy(mode, &[(Behavior::Allow, tool)]));
            assert!(text.starts_with("deny: ") && text.contains(rule), "{mode}: {text}");
            let asked = policy(mode, &[(Behavior::Ask, rule)]);
            assert!(verdict(tool, effect.clone(), &asked).starts_with("deny: "), "{mode} {rule}");
            let named = policy(mode, &[(Behavior::Allow, rule)]);
            let expected = if mode == Mode::Plan { "deny" } else { "allow" };
            assert!(verdict(tool, effect, &named).starts_with(expected), "{mode} {rule}");
        }
    }
}

#[test]
fn secrets_are_read_by_a_rule_with_their_path_or_a_yes() {
    let secret = |rules: &[(Behavior, &str)], mode| {
        let policy = policy(mode, rules);
        let scope = Scope { secrets: vec![".env".into()], ..(*policy.scope).clone() };
        verdict("Read", read("/w/.env"), &Policy { scope: scope.into(), ..policy })
    };
    assert_eq!(secret(&[(Behavior::Allow, "Read")], Mode::Scoped), "ask: /w/.env may hold secrets");
    assert!(secret(&[(Behavior::Allow, "Read(.env)")], Mode::Scoped).starts_with("allow"));
    assert!(secret(&[], Mode::BypassPermissions).starts_with("deny"));
}

#[test]
fn a_scope_lets_a_call_do_only_what_it_declared() {
    let policy = policy(Mode::Scoped, &[]);
    match decide(Request { tool: "Read", effects: &[read("/w/a")] }, &policy) {
        Decided::Allow(scope, _) => assert!(!scope.writes && !scope.runs),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_rule_that_cannot_be_read_says_where_it_stands() {
    let error = Rule::parse(Behavior::Deny, "Bash(rm", "haft.toml:3", Path::new("/w"), &RuleTools::default())
        .unwrap_err();
    assert_eq!(error.message, "haft.toml:3: the rule \"Bash(rm\" has no closing parenthesis");
}

#[test]
fn a_message_is_sent_when_a_rule_or_the_user_says_so() {
    let send = || Effect::Send { channel: "slack".into() };
    assert_eq!(
        verdict("message", send(), &policy(Mode::Scoped, &[])),
        "ask: it would send a message by slack"
    );
    let named = policy(Mode::Scoped, &[(Behavior::Allow, "message(slack)")]);
    assert!(verdict("message", send(), &named).ends_with("[message(slack) (test:1)]"));
    assert!(verdict("message", Effect::Send { channel: "telegram".into() }, &named).starts_with("ask"));
    let denied = policy(Mode::BypassPermissions, &[(Behavior::Deny, "message(slack)")]);
    assert!(verdict("message", send(), &denied).starts_with("deny"));
    assert!(verdict("message", send(), &policy(Mode::Plan, &[])).starts_with("deny"));
}

#[test]
fn rule_names_one_tool_of_a_server_or_all_of_them() {
    let serve = |server: &str| Effect::Serve { server: server.to_owned(), reaches: true, writes: false };
    let allowed = policy(Mode::Scoped, &[(Behavior::Allow, "mcp__a"), (Behavior::Allow, "mcp__b__one")]);
    assert!(verdict("mcp__a__one", serve("a"), &allowed).starts_with("allow"));
    assert!(verdict("mcp__b__one", serve("b"), &allowed).starts_with("allow"));
    assert!(verdict("mcp__b__two", serve("b"), &allowed).starts_with("ask"));
    assert!(verdict("mcp__ab__one", serve("ab"), &allowed).starts_with("ask"));
    let other = verdict("mcp__a__b__one", serve("a__b"), &allowed);
    assert!(other.starts_with("ask"), "a name that looks like a's is not a's: {other}");
    let denied = policy(Mode::Scoped, &[(Behavior::Deny, "mcp__a"), (Behavior::Allow, "mcp__a__one")]);
    assert_eq!(
        verdict("mcp__a__one", serve("a"), &denied),
        "deny: mcp__a__one is denied by a rule [mcp__a (test:1)]"
    );
    assert!(
        denied.rules.removing("mcp__a__one").is_some() && denied.rules.removing("mcp__ab__one").is_none()
    );
}

#[test]
fn undo_is_limited_to_its_own_session_unless_a_rule_says_more() {
    let own = Effect::Undo { call: 7, own_session: true, partial: false };
    let other = Effect::Undo { call: 7, own_session: false, partial: false };
    for mode in [Mode::Scoped, Mode::BypassPermissions] {
        let plain = policy(mode, &[(Behavior::Allow, "haft_undo")]);
        assert!(verdict("haft_undo", own.clone(), &plain).starts_with("allow"), "{mode}");
        assert_eq!(
            verdict("haft_undo", other.clone(), &plain),
            "deny: call 7 was made in another session; the rule haft_undo(other-sessions) allows that"
        );
        let ruled = policy(mode, &[(Behavior::Allow, "haft_undo(other-sessions)")]);
        assert!(verdict("haft_undo", other.clone(), &ruled).starts_with("allow"), "{mode}");
        assert!(verdict("Undo", other.clone(), &plain.for_user_request()).starts_with("allow"), "{mode}");
    }
    assert!(verdict("haft_undo", own, &policy(Mode::Plan, &[])).starts_with("deny"));
}

#[test]
fn notes_and_stopped_tasks_need_no_question() {
    for mode in Mode::ALL {
        let policy = policy(mode, &[]);
        let note = Effect::Note { name: "todos".into() };
        assert!(verdict("TodoWrite", note, &policy).starts_with("allow"), "{mode}");
        let stop = Effect::StopTask { task: "t1".into() };
        assert!(verdict("TaskStop", stop, &policy).starts_with("allow"), "{mode}");
    }
}
