//! The page of `haft serve` in Chromium: the scripts in `tests/serve_page`, which start servers, agents and models themselves.

use std::path::Path;
use std::process::Command;

use crate::fixture::haft_program;
use crate::fixture::peers::{agent, node};

/// Runs a script; if it fails, the message has its output.
fn run(script: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve_page");
    let mut command = Command::new(node());
    command
        .args(["--test-reporter=spec", script])
        .current_dir(folder)
        .env("HAFT_TEST_PROGRAM", haft_program());
    command.env("HAFT_PAGE_NODE", agent("HAFT_PAGE_NODE"));
    let output = command.output().unwrap();
    let (said, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}: {}\n{said}{complaints}", output.status);
}

#[test]
fn the_token_stays_in_its_tab() {
    run("login.mjs");
}

#[test]
fn what_happens_elsewhere_is_seen_and_answered() {
    run("live.mjs");
}

#[test]
fn each_kind_of_question_is_answered() {
    run("questions.mjs");
}

#[test]
fn the_list_of_sessions_is_live() {
    run("sessions.mjs");
}

#[test]
fn every_view_shows_what_happened_to_everyone() {
    run("views.mjs");
}

#[test]
fn the_view_of_files_keeps_what_is_looked_at() {
    run("files.mjs");
}

#[test]
fn what_is_done_on_the_page_is_done() {
    run("actions.mjs");
}

#[test]
fn everything_can_be_reached_with_the_keyboard() {
    run("keyboard.mjs");
}

#[test]
fn a_conversation_is_started_read_and_continued() {
    run("chat.mjs");
}

#[test]
fn an_exported_session_needs_no_server() {
    run("export.mjs");
}

#[test]
fn hostile_content_is_inert() {
    run("hostile.mjs");
}

#[test]
fn long_lists_are_windowed() {
    run("large.mjs");
}

#[test]
fn the_types_of_the_scripts_are_right() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-server/web");
    let compiler = Path::new(&agent("HAFT_PAGE_NODE")).join("typescript/bin/tsc");
    let checked = Command::new(node()).arg(compiler).arg("-p").arg(web).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}
