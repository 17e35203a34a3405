//! Matchers.

use haft_compat::hooks::{HookEvent, HookMatcher};

fn matches(matcher: &str, subject: &str) -> bool {
    HookMatcher::new(matcher, &HookEvent::PreToolUse).matches(&[subject])
}

#[test]
fn empty_and_a_star_match_everything() {
    assert!(matches("", "Bash") && matches("*", "mcp__a__b"));
}

#[test]
fn names_match_exactly() {
    assert!(matches("Write", "Write") && !matches("Write", "NotebookWrite") && !matches("Write", "write"));
    assert!(matches("Edit|Write", "Write") && !matches("Edit|Write", "Read"));
    assert!(matches("Edit, Write", "Write") && matches(" Edit | my-tool ", "my-tool"));
    assert!(!matches("|", "Bash"), "a list without names matches nothing");
}

#[test]
fn all_else_is_a_regular_expression_that_is_searched() {
    assert!(matches("Notebook.*", "NotebookEdit") && matches("Notebook.*", "MyNotebookTool"));
    assert!(matches("^Bash$", "Bash") && !matches("^Bash$", "BashOutput"));
    assert!(matches(r"mcp__\w+__write.*", "mcp__files__write_file"));
    assert!(matches("mcp__.*", "mcp__a__b") && !matches("mcp__.*", "Bash"));
}

#[test]
fn any_name_of_a_subject_matches() {
    let matcher = HookMatcher::new("Task", &HookEvent::PreToolUse);
    assert!(matcher.matches(&["Agent", "Task"]) && !matcher.matches(&["Agent"]));
}

#[test]
fn an_event_without_a_subject_matches_always() {
    assert!(HookMatcher::new("Bash", &HookEvent::Stop).matches(&[]));
}

#[test]
fn commas_separate_names_only_where_subjects_are_from_a_list() {
    let matcher = HookMatcher::new("a,b", &HookEvent::StopFailure);
    assert!(!matcher.matches(&["a"]) && matcher.matches(&["xa,by"]), "it is a regular expression");
}

#[test]
fn a_huge_expression_is_refused_and_matches_everything() {
    let matcher = HookMatcher::new(r"(\w{1000}){1000}.", &HookEvent::PreToolUse);
    assert!(matcher.unreadable().is_some() && matcher.matches(&["Bash"]));
}
