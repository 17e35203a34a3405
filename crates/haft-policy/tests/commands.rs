//! What is decided about shell commands, for the whole table of commands of `haft-shell` and for sets of rules.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use haft_policy::{Behavior, Decided, Mode, Policy, Request, Rule, RuleTools, Rules, decide};
use haft_tool::{Effect, Scope};

const COMMANDS: &str = include_str!("../../haft-shell/tests/it/commands.txt");

fn policy(mode: Mode, rules: &[(Behavior, &str)]) -> Policy {
    let mut all = Rules::default();
    for (behavior, text) in rules {
        all.push(Rule::parse(*behavior, text, "test:1", Path::new("/w"), &RuleTools::default()).unwrap());
    }
    Policy { mode, rules: all, scope: Scope::of("/w").into(), commands_reversible: true, user_request: false }
}

fn verdict(command: &str, policy: &Policy) -> (&'static str, String) {
    let effects = [Effect::Run { command: command.to_owned() }];
    match decide(Request { tool: "Bash", effects: &effects }, policy) {
        Decided::Allow(_, decision) => ("allow", decision.reason),
        Decided::Ask(_, decision) => ("ask", decision.reason),
        Decided::Deny(decision) => ("deny", decision.reason),
    }
}

/// The rows of the table: the verdict of the parser and the source.
fn table() -> Vec<(&'static str, String)> {
    let rows = COMMANDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let (parsed, rest) = row.split_once("  ").unwrap();
        let source = rest.split(" ==>").next().unwrap_or(rest).trim_start();
        let mut text = source.replace('⏎', "\n").replace('⇥', "\t");
        while let Some(start) = text.find("<U+") {
            let code = u32::from_str_radix(&text[start + 3..start + 7], 16).unwrap();
            text.replace_range(start..start + 8, &char::from_u32(code).unwrap().to_string());
        }
        (parsed, text)
    })
    .collect()
}

#[test]
fn a_mode_that_asks_lets_commands_that_only_read_run_and_asks_for_all_others() {
    let rows = table();
    assert!(rows.len() > 900, "{}", rows.len());
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::DontAsk, Mode::Plan] {
        let policy = policy(mode, &[]);
        for (parsed, command) in &rows {
            let (got, why) = verdict(command, &policy);
            let otherwise = if matches!(mode, Mode::DontAsk | Mode::Plan) { "deny" } else { "ask" };
            let expected = if *parsed == "read-only" { "allow" } else { otherwise };
            assert_eq!(got, expected, "{mode}: {parsed} {command:?}: {why}");
        }
    }
}

#[test]
fn what_is_not_understood_is_never_allowed_by_a_rule_that_does_not_name_it_as_it_is() {
    let programs =
        "git:* make:* cat:* ls:* echo:* find:* xargs:* sudo:* env:* sh:* bash:* eval:* timeout:* rm:*";
    let rules: Vec<String> = programs.split(' ').map(|name| format!("Bash({name})")).collect();
    let rules: Vec<_> = rules.iter().map(|rule| (Behavior::Allow, rule.as_str())).collect();
    let policy = policy(Mode::Default, &rules);
    let mut unclear = 0;
    for (parsed, command) in table() {
        if parsed.starts_with("unclear") || parsed == "invalid" || parsed == "refused" {
            unclear += 1;
            assert_eq!(verdict(&command, &policy).0, "ask", "{command:?}");
        }
    }
    assert!(unclear > 250, "{unclear}");
}

#[test]
fn a_rule_that_denies_a_program_denies_it_in_every_command_that_runs_it() {
    let policy = policy(Mode::BypassPermissions, &[(Behavior::Deny, "Bash(rm:*)")]);
    let denied = [
        "rm x",
        "/bin/rm x",
        "r''m x",
        "\\rm x",
        "command rm x",
        "sudo -u root rm -rf /",
        "env A=1 rm x",
        "timeout 5 rm x",
        "nice -n 5 nohup rm x",
        "xargs -0 rm",
        "find . -name x -exec rm {} +",
        "sh -c 'rm x'",
        "bash -c \"cd y; rm x\"",
        "echo $(rm x)",
        "echo `rm x`",
        "cat <(rm x)",
        "if true; then rm x; fi",
        "for f in *; do rm $f; done",
        "f() { rm x; }; f",
        "ls && rm x",
        "ls; rm x",
        "ls | rm x",
        "ls & rm x",
        "(rm x)",
        "{ rm x; }",
        "true\nrm x",
        "eval 'rm x'",
        "trap 'rm x' EXIT",
        "cat <<E\n$(rm x)\nE",
        "git -c alias.x='!rm x' x",
        "$unknown; rm x",
        "rm x 'unterminated",
    ];
    for command in denied {
        assert_eq!(verdict(command, &policy).0, "deny", "{command:?}");
    }
    for command in ["firm x", "echo rm x", "git commit -m 'drop; rm x'", "ls rm", "cat rm.txt # rm x"] {
        assert_eq!(verdict(command, &policy).0, "allow", "{command:?}");
    }
}

#[test]
fn several_rules_allow_a_command_together() {
    let rules = [(Behavior::Allow, "Bash(npm run *)"), (Behavior::Allow, "Bash(git commit:*)")];
    let policy = policy(Mode::Default, &rules);
    for (command, expected) in [
        ("npm run build && git commit -am 'built'", "allow"),
        ("cd sub && npm run build | tail -5", "allow"),
        ("timeout 60 npm run test 2>/dev/null", "allow"),
        ("npm run build && npm publish", "ask"),
        ("npm run build > log", "ask"),
        ("npm run $(cat name)", "allow"),
        ("npm run \"$(npm publish)\"", "ask"),
        ("sudo npm run build", "ask"),
        ("PATH=. npm run build", "ask"),
    ] {
        let (got, why) = verdict(command, &policy);
        assert_eq!(got, expected, "{command}: {why}");
    }
    let (_, why) = verdict("npm run build && npm publish", &policy);
    assert_eq!(why, "it would run: npm run build && npm publish (no rule allows npm publish)");
    let (_, why) = verdict("npm run build; eval \"$x\"", &policy);
    assert!(why.ends_with("is code that is known only when it runs)"), "{why}");
}

#[test]
fn files_that_an_allowed_command_writes_are_judged_as_writes() {
    let allow = (Behavior::Allow, "Bash(make:*)");
    let edits = policy(Mode::AcceptEdits, &[allow]);
    assert_eq!(verdict("make > out/log", &edits).0, "allow");
    for asked in
        ["make > /etc/log", "make > .git/hooks/pre-commit", "make > \"$x\"", "cd a; make > b", "make > ../b"]
    {
        assert_eq!(verdict(asked, &edits).0, "ask", "{asked}");
    }
    let asking = policy(Mode::Default, &[allow]);
    assert_eq!(verdict("make > log", &asking).0, "ask");
    assert_eq!(verdict("make > /dev/null 2>&1", &asking).0, "allow");
    let with_edits = policy(Mode::Default, &[allow, (Behavior::Allow, "Edit(/out/**)")]);
    assert_eq!(verdict("make > out/log", &with_edits).0, "allow");
    assert_eq!(verdict("make > log", &with_edits).0, "ask");
    // It was allowed as it is.
    let exact = policy(Mode::Default, &[(Behavior::Allow, "Bash(make > log)")]);
    assert_eq!(verdict("make > log", &exact).0, "allow");
    assert_eq!(verdict("make > log2", &exact).0, "ask");
}
