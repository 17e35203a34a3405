//! Who is asked first, and how waiting for an answer ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;

use haft_ledger::{NewSession, SessionChoice};

use super::*;

fn handle() -> (tempfile::TempDir, LedgerHandle) {
    let dir = tempfile::tempdir().unwrap();
    let new = NewSession { workspace: "/w".into(), dialect: "claude".into(), entry_point: "cli".into() };
    let handle = LedgerHandle::new(dir.path().join("home"), new, SessionChoice::New);
    (dir, handle)
}

fn plan(text: &str) -> SharedQuestion {
    SharedQuestion::Plan { plan: Some(text.to_owned()), allow: Vec::new() }
}

fn unrecorded<T>(_: &T) -> Option<SharedAnswer> {
    None
}

#[test]
fn a_person_is_asked_before_the_question_for_pages_is_made() {
    let (_dir, handle) = handle();
    let (asked, was_asked) = channel();
    let was_asked = std::sync::Mutex::new(was_asked);
    let body = || {
        was_asked.lock().unwrap().recv().unwrap();
        plan("tea")
    };
    let local = |cancel: &Cancel| {
        asked.send(()).unwrap();
        // A page's answer ends the question here.
        while !cancel.wait(POLL_INTERVAL) {
            let ledger = handle.ledger().unwrap();
            for question in ledger.open_questions().unwrap() {
                let answer = local_answer(AnswerContent::Deny { reason: None });
                ledger.answer(question.id, &serde_json::to_value(&answer).unwrap()).unwrap();
            }
        }
    };
    let answer = first_answer(&handle, Audience::Person, &body, &local, &unrecorded, &Cancel::new());
    let FirstAnswer::Remote(answer) = answer else { panic!("a page was first") };
    assert_eq!(answer.content.summary(), "denied it");
}

#[test]
fn a_question_that_fails_here_ends_on_pages() {
    let (_dir, handle) = handle();
    let local = |_: &Cancel| {
        while handle.ledger().unwrap().open_questions().unwrap().is_empty() {
            std::thread::yield_now();
        }
        panic!("no terminal")
    };
    let ask = || {
        let body = || plan("tea");
        first_answer::<()>(&handle, Audience::Person, &body, &local, &unrecorded, &Cancel::new());
    };
    assert!(catch_unwind(AssertUnwindSafe(ask)).is_err());
}

#[test]
fn a_question_that_another_process_withdraws_is_answered_here() {
    let (_dir, handle) = handle();
    let ledger = handle.ledger().unwrap();
    ledger.set_answering(true).unwrap();
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                if let Some(question) = ledger.open_questions().unwrap().first() {
                    ledger.withdraw(question.id).unwrap();
                    return;
                }
                std::thread::yield_now();
            }
        });
        let body = || plan("tea");
        first_answer(&handle, Audience::PagesOnly, &body, &|_| "no one", &unrecorded, &Cancel::new())
    });
    assert!(matches!(answer, FirstAnswer::Local("no one")));
}

#[test]
fn a_question_that_is_too_long_for_pages_says_so() {
    let (_dir, handle) = handle();
    handle.ledger().unwrap().set_answering(true).unwrap();
    let body = || plan(&"x".repeat(2 << 20));
    let answer =
        first_answer(&handle, Audience::PagesOnly, &body, &|_| "no one", &unrecorded, &Cancel::new());
    let FirstAnswer::NotShown("no one", error) = answer else { panic!("it was shown") };
    assert!(not_shown(&error).starts_with("No page showed the question: The question has 2097"), "{error}");
    assert!(handle.ledger().unwrap().open_questions().unwrap().is_empty());
}
