//! `hooks` in settings files.

use std::time::Duration;

use haft_compat::hooks::{HookEvent, OnFailure};
use haft_compat::settings::{HookAction, MAX_HOOK_TIMEOUT};

use crate::settings::parse;

#[test]
fn groups_and_handlers_are_read() {
    let settings = parse(
        r#"{"hooks": {"PreToolUse": [
            {"matcher": "Bash|Edit", "hooks": [
                {"type": "command", "command": "guard.sh", "timeout": 1.5, "if": "Bash(rm *)", "onFailure": "continue"},
                {"type": "command", "command": "log", "args": ["-x"], "async": true, "once": true, "statusMessage": "m"}
            ]},
            {"hooks": [{"command": "all", "on_failure": "block", "asyncRewake": true, "shell": "bash"}]}
        ], "Stop": [{"hooks": []}]}}"#,
    );
    assert_eq!(settings.problems, []);
    assert_eq!(settings.other_keys, []);
    let groups: Vec<_> = settings.hooks.groups(&HookEvent::PreToolUse).collect();
    assert_eq!(groups.len(), 2);
    assert_eq!((groups[0].matcher.value.text(), groups[0].matcher.line), ("Bash|Edit", 2));
    let guard = &groups[0].handlers[0];
    assert_eq!(guard.line, 3);
    assert_eq!(guard.value.timeout, Some(Duration::from_millis(1500)));
    assert_eq!(guard.value.condition.as_ref().unwrap().value, "Bash(rm *)");
    assert_eq!(guard.value.on_failure, Some(OnFailure::Continue));
    let log = &groups[0].handlers[1].value;
    let arguments = Some(vec!["-x".to_owned()]);
    assert_eq!(log.action, HookAction::Command { command: "log".to_owned(), arguments });
    assert!(log.is_async && log.once && log.status_message.is_some());
    let all = &groups[1].handlers[0].value;
    assert!(all.is_async, "asyncRewake implies async");
    assert_eq!(all.on_failure, Some(OnFailure::Block));
    assert!(groups[1].matcher.value.matches(&["Anything"]));
}

#[test]
fn what_the_group_says_holds_for_handlers_that_say_nothing() {
    let text = r#"{"hooks": {"PreToolUse": [{"timeout": 5, "onFailure": "continue", "hooks": [
        {"command": "a"}, {"command": "b", "timeout": 7, "onFailure": "block"}]}]}}"#;
    let settings = parse(text);
    let handlers = &settings.hooks.events[0].groups[0].handlers;
    let of = |at: usize| (handlers[at].value.timeout.unwrap().as_secs(), handlers[at].value.on_failure);
    assert_eq!(of(0), (5, Some(OnFailure::Continue)));
    assert_eq!(of(1), (7, Some(OnFailure::Block)));
}

#[test]
fn a_guard_that_cannot_run_is_a_lost_restriction_and_another_hook_is_not() {
    let lost = |event: &str, handler: &str| {
        let settings = parse(&format!(r#"{{"hooks": {{"{event}": [{{"hooks": [{handler}]}}]}}}}"#));
        assert!(!settings.problems.is_empty(), "{event} {handler}");
        settings.lost_restrictions().count() > 0
    };
    for handler in [
        r#"{"type": "http", "url": "https://x"}"#,
        r#"{"type": "command"}"#,
        r#"{"command": "x", "shell": "powershell"}"#,
        "5",
    ] {
        assert!(lost("PreToolUse", handler), "{handler}");
        assert!(!lost("Notification", handler), "{handler}");
    }
    assert!(lost("PreToolUs", r#"{"command": "x"}"#), "a misspelled event may be meant as a guard");
    assert!(!lost("ConfigChange", r#"{"command": "x"}"#));
}

#[test]
fn unknown_events_are_kept_and_reported_with_the_nearest_name() {
    let settings = parse(r#"{"hooks": {"PreToolUs": [{"hooks": []}], "TeammateIdle": []}}"#);
    assert_eq!(settings.hooks.events[0].event.value, HookEvent::Other("PreToolUs".to_owned()));
    assert!(settings.problems[0].why.ends_with("Did you mean PreToolUse?"), "{}", settings.problems[0]);
    assert!(settings.problems[1].why.contains("does not have this event"), "{}", settings.problems[1]);
}

#[test]
fn timeouts_are_seconds_above_zero_up_to_a_day() {
    let timeout = |text: &str| {
        let settings = parse(&format!(
            r#"{{"hooks": {{"Stop": [{{"hooks": [{{"command": "x", "timeout": {text}}}]}}]}}}}"#
        ));
        (settings.hooks.events[0].groups[0].handlers[0].value.timeout, settings.problems.len())
    };
    assert_eq!(timeout("0"), (None, 1));
    assert_eq!(timeout("-1"), (None, 1));
    assert_eq!(timeout("\"5\""), (None, 1));
    assert_eq!(timeout("1e-12"), (Some(Duration::from_millis(1)), 0));
    assert_eq!(timeout("1e300"), (Some(MAX_HOOK_TIMEOUT), 0));
    assert_eq!(timeout("60"), (Some(Duration::from_mins(1)), 0));
}

#[test]
fn a_matcher_that_is_not_understood_is_reported_and_matches_everything() {
    let settings =
        parse(r#"{"hooks": {"PreToolUse": [{"matcher": "(?!Bash).*", "hooks": [{"command": "x"}]}]}}"#);
    assert_eq!(settings.problems.len(), 1);
    assert!(settings.hooks.events[0].groups[0].matcher.value.matches(&["Bash"]));
}
