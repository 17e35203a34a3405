//! Several hooks of one event.

use haft_compat::hooks::{HookBehavior, HookEnd, HookEvent, HookExit, HookOutcome, HookPermissionAnswer};
use proptest::prelude::*;
use serde_json::{Value, json};

fn outcome(event: &HookEvent, output: &Value) -> HookOutcome {
    let stdout = output.to_string();
    HookOutcome::read(
        event,
        &HookExit { end: HookEnd::Code(0), stdout: stdout.as_bytes(), stderr: b"" },
        None,
    )
}

fn decided(word: &str, reason: &str) -> HookOutcome {
    let output = json!({"permissionDecision": word, "permissionDecisionReason": reason});
    outcome(&HookEvent::PreToolUse, &json!({"hookSpecificOutput": output}))
}

fn with_input(input: &Value) -> HookOutcome {
    let output = json!({"permissionDecision": "allow", "updatedInput": input});
    outcome(&HookEvent::PreToolUse, &json!({"hookSpecificOutput": output}))
}

#[test]
fn the_strongest_decision_wins_with_all_its_reasons() {
    let merged = HookOutcome::merge([
        decided("ask", "a"),
        decided("deny", "first"),
        decided("allow", "b"),
        decided("deny", "second"),
        decided("defer", "c"),
    ]);
    let decision = merged.decision.unwrap();
    assert_eq!(decision.behavior, HookBehavior::Deny);
    assert_eq!(decision.reason.as_deref(), Some("first\nsecond"));
}

#[test]
fn of_different_inputs_the_last_wins_and_the_conflict_is_told() {
    let merged = HookOutcome::merge([
        with_input(&json!({"a": 1})),
        HookOutcome::default(),
        with_input(&json!({"a": 2})),
    ]);
    assert_eq!(merged.updated_input.unwrap()["a"], 2);
    assert!(merged.has_conflicting_inputs);
    let merged = HookOutcome::merge([with_input(&json!({"a": 1})), with_input(&json!({"a": 1}))]);
    assert!(!merged.has_conflicting_inputs);
}

#[test]
fn a_denied_call_has_no_new_input() {
    let merged = HookOutcome::merge([decided("deny", ""), with_input(&json!({"a": 1}))]);
    assert_eq!(merged.updated_input, None);
}

#[test]
fn texts_are_concatenated_in_order_and_bounded() {
    let context =
        |text: &str| outcome(&HookEvent::Stop, &json!({"hookSpecificOutput": {"additionalContext": text}}));
    let merged = HookOutcome::merge([context("1"), context("2")]);
    assert_eq!(merged.additional_context, ["1", "2"]);
    let merged = HookOutcome::merge((0..1000).map(|_| context("x")));
    assert_eq!(merged.additional_context.len(), 100);
}

#[test]
fn one_refusal_of_a_permission_outweighs_all_permissions() {
    let answer = |answer: Value| {
        outcome(&HookEvent::PermissionRequest, &json!({"hookSpecificOutput": {"decision": answer}}))
    };
    let (allow, deny) = (json!({"behavior": "allow"}), json!({"behavior": "deny", "message": "no"}));
    for order in [[&allow, &deny, &allow], [&deny, &allow, &allow], [&allow, &allow, &deny]] {
        let merged = HookOutcome::merge(order.map(|it| answer(it.clone())));
        assert!(matches!(merged.permission_answer, Some(HookPermissionAnswer::Deny { .. })), "{order:?}");
    }
}

#[test]
fn one_hook_that_stops_the_run_stops_it() {
    let stop = |reason: &str| outcome(&HookEvent::Stop, &json!({"continue": false, "stopReason": reason}));
    let merged = HookOutcome::merge([HookOutcome::default(), stop("a"), stop("b")]);
    assert_eq!(merged.stop.unwrap().reason.as_deref(), Some("a\nb"));
}

#[test]
fn outcomes_are_detached_together_only_if_all_are() {
    let detached = || outcome(&HookEvent::PreToolUse, &json!({"async": true}));
    assert!(HookOutcome::merge([detached(), detached()]).is_detached);
    assert!(!HookOutcome::merge([detached(), HookOutcome::default()]).is_detached);
    assert_eq!(HookOutcome::merge([]), HookOutcome::default());
}

proptest! {
    #[test]
    fn no_order_and_no_other_hook_weakens_a_decision(words in prop::collection::vec(
        prop::sample::select(vec!["allow", "ask", "defer", "deny"]), 1..6,
    )) {
        let strongest = words.iter().map(|word| decided(word, "").decision.unwrap().behavior).max().unwrap();
        let merged = HookOutcome::merge(words.iter().map(|word| decided(word, "r")));
        prop_assert_eq!(merged.decision.unwrap().behavior, strongest);
    }
}
