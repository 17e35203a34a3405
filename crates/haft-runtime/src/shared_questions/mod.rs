//! Questions that are asked in several places: by this process's asker, and on the pages of servers, which read them from the
//! ledger. The first answer counts.

mod host;
mod question;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use haft_ledger::{Ledger, LedgerHandle, QuestionId};
use haft_tool::{Audience, Cancel, ErrorKind, ToolError};

pub(crate) use host::SharedHost;
pub use question::{AnswerContent, PermissionQuestion, SharedAnswer, SharedChange, SharedQuestion};

use crate::steps::ask::{Asker, PermissionAnswer, Question};

/// How often the ledger is checked for an answer.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often it is checked that a page still shows the question.
const PAGES_INTERVAL: Duration = Duration::from_secs(1);
/// How long a question waits when no page shows it any more, because its server may be restarting.
const RESTART_TIME: Duration = Duration::from_secs(30);

/// The author of an answer that does not say who gave it.
const UNNAMED_PERSON: &str = "the one who was asked";

/// The first answer to a question.
enum FirstAnswer<T> {
    /// From this process.
    Local(T),
    /// From this process, because no page could show the question; with the reason.
    NotShown(T, ToolError),
    /// From a page.
    Remote(SharedAnswer),
}

/// Asks about a call here and on pages.
pub(crate) fn ask_about_call(
    ledger: &LedgerHandle,
    asker: &dyn Asker,
    question: &Question,
    cancel: &Cancel,
) -> PermissionAnswer {
    let local = |cancel: &Cancel| asker.ask(question, cancel);
    let body = || SharedQuestion::of_call(question);
    let recorded = |answer: &PermissionAnswer| match answer {
        PermissionAnswer::Allow { by } | PermissionAnswer::AllowInput { by, .. } => {
            Some(SharedAnswer { by: by.clone(), content: AnswerContent::Allow { for_session: false } })
        }
        PermissionAnswer::AllowRule { by, .. } => {
            Some(SharedAnswer { by: by.clone(), content: AnswerContent::Allow { for_session: true } })
        }
        PermissionAnswer::Deny { why } => {
            Some(local_answer(AnswerContent::Deny { reason: Some(why.clone()) }))
        }
    };
    match first_answer(ledger, asker.audience(), &body, &local, &recorded, cancel) {
        FirstAnswer::Local(answer) => answer,
        FirstAnswer::NotShown(PermissionAnswer::Deny { why }, error) => {
            PermissionAnswer::Deny { why: format!("{} {why}", not_shown(&error)) }
        }
        FirstAnswer::NotShown(answer, _) => answer,
        FirstAnswer::Remote(SharedAnswer { by, content }) => {
            asker.answered_elsewhere(&by, &content.summary());
            match (content, &question.rule) {
                (AnswerContent::Allow { for_session: true }, Some(rule)) => {
                    PermissionAnswer::AllowRule { by, rule: rule.clone() }
                }
                (AnswerContent::Allow { .. }, _) => PermissionAnswer::Allow { by },
                (AnswerContent::Deny { reason: Some(reason) }, _) => {
                    PermissionAnswer::Deny { why: format!("Denied by {by}: {reason}") }
                }
                _ => PermissionAnswer::Deny { why: format!("Denied by {by}.") },
            }
        }
    }
}

/// An answer of this process, whose author is not known.
fn local_answer(content: AnswerContent) -> SharedAnswer {
    SharedAnswer { by: UNNAMED_PERSON.to_owned(), content }
}

/// Why no page was asked.
fn not_shown(error: &ToolError) -> String {
    format!("No page showed the question: {}", error.message)
}

/// Asks here, if there is a person, and on pages; the first answer counts. Without a person here it waits while a page shows the
/// question, then takes `local`'s answer.
fn first_answer<T>(
    handle: &LedgerHandle,
    audience: Audience,
    body: &(dyn Fn() -> SharedQuestion + Sync),
    local: &dyn Fn(&Cancel) -> T,
    recorded: &dyn Fn(&T) -> Option<SharedAnswer>,
    cancel: &Cancel,
) -> FirstAnswer<T> {
    match audience {
        Audience::Person => ask_person_and_pages(handle, body, local, recorded, cancel),
        Audience::PagesOnly if has_page(handle) => match PostedQuestion::new(handle, &body()) {
            Ok(posted) => match posted.wait(cancel) {
                Some(answer) => FirstAnswer::Remote(answer),
                None => FirstAnswer::Local(local(cancel)),
            },
            Err(error) => FirstAnswer::NotShown(local(cancel), error),
        },
        Audience::PagesOnly | Audience::NoOne => FirstAnswer::Local(local(cancel)),
    }
}

fn ask_person_and_pages<T>(
    handle: &LedgerHandle,
    body: &(dyn Fn() -> SharedQuestion + Sync),
    local: &dyn Fn(&Cancel) -> T,
    recorded: &dyn Fn(&T) -> Option<SharedAnswer>,
    cancel: &Cancel,
) -> FirstAnswer<T> {
    // Fires when the question is cancelled or answered on a page.
    let stop = Cancel::new();
    let stopping = stop.clone();
    let _link = cancel.on_cancel(move || stopping.cancel());
    let done = Cancel::new();
    let (answer, posted) = std::thread::scope(|scope| {
        // On another thread, because differences of long files take time and the person here should not wait for them.
        let watcher = scope.spawn(|| watch(handle, body, &stop, &done));
        // Ends the watcher even if `local` panics, because the scope waits for it.
        let local_end = StopPollingOnDrop(&done);
        let answer = local(&stop);
        drop(local_end);
        (answer, watcher.join().ok().flatten())
    });
    match posted {
        Some((_, Some(remote))) => FirstAnswer::Remote(remote),
        Some((posted, None)) => match recorded(&answer).filter(|_| !cancel.is_cancelled()) {
            Some(own) => posted.close(&own).map_or(FirstAnswer::Local(answer), FirstAnswer::Remote),
            None => FirstAnswer::Local(answer),
        },
        None => FirstAnswer::Local(answer),
    }
}

/// Posts a question and waits for a page's answer until `done` fires. Fires `stop` when there is one.
fn watch<'a>(
    handle: &'a LedgerHandle,
    body: &dyn Fn() -> SharedQuestion,
    stop: &Cancel,
    done: &Cancel,
) -> Option<(PostedQuestion<'a>, Option<SharedAnswer>)> {
    let body = body();
    if done.is_cancelled() {
        return None;
    }
    // The person here is asked even if the ledger cannot take the question.
    let posted = PostedQuestion::new(handle, &body)
        .inspect_err(|error| tracing::warn!(%error, "a question is not shown on pages"))
        .ok()?;
    while !done.wait(POLL_INTERVAL) {
        match posted.poll() {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(None) => break,
            ControlFlow::Break(Some(answer)) => {
                stop.cancel();
                return Some((posted, Some(answer)));
            }
        }
    }
    Some((posted, None))
}

struct StopPollingOnDrop<'a>(&'a Cancel);

impl Drop for StopPollingOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Whether a page shows questions to a person.
fn has_page(handle: &LedgerHandle) -> bool {
    handle.ledger().and_then(Ledger::is_anyone_answering).unwrap_or(false)
}

/// A question in the ledger. Dropping it withdraws it, unless it was answered.
struct PostedQuestion<'a> {
    ledger: &'a Ledger,
    id: QuestionId,
}

impl<'a> PostedQuestion<'a> {
    fn new(handle: &'a LedgerHandle, question: &SharedQuestion) -> Result<Self, ToolError> {
        let (ledger, session) = (handle.ledger()?, handle.session()?);
        let id = ledger.ask(session, &serde_json::to_value(question)?)?;
        Ok(Self { ledger, id })
    }

    /// Breaks with the answer that was given elsewhere, or without one if the question was withdrawn.
    fn poll(&self) -> ControlFlow<Option<SharedAnswer>> {
        // The ledger may be readable again later.
        let Ok(stored) = self.ledger.question(self.id) else { return ControlFlow::Continue(()) };
        if stored.ended_at.is_none() {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(stored.answer.and_then(|answer| serde_json::from_value(answer).ok()))
    }

    /// Waits for an answer; `None` if the question is cancelled or withdrawn, or no page has shown it for a while.
    fn wait(&self, cancel: &Cancel) -> Option<SharedAnswer> {
        let (mut checked, mut shown) = (Instant::now(), Instant::now());
        loop {
            if let ControlFlow::Break(answer) = self.poll() {
                return answer;
            }
            if cancel.wait(POLL_INTERVAL) {
                return None;
            }
            if checked.elapsed() > PAGES_INTERVAL {
                checked = Instant::now();
                if self.ledger.is_anyone_answering().unwrap_or(false) {
                    shown = Instant::now();
                } else if shown.elapsed() > RESTART_TIME {
                    return None;
                }
            }
        }
    }

    /// Stores this process's own answer; returns an earlier one, if there is one.
    fn close(&self, own: &SharedAnswer) -> Option<SharedAnswer> {
        let own = serde_json::to_value(own).ok()?;
        match self.ledger.answer(self.id, &own) {
            Err(error) if error.kind == ErrorKind::Conflict => self.poll().break_value().flatten(),
            _ => None,
        }
    }
}

impl Drop for PostedQuestion<'_> {
    fn drop(&mut self) {
        // Has no effect on an answered question. If this fails, the question ends with the process.
        let _ = self.ledger.withdraw(self.id);
    }
}
