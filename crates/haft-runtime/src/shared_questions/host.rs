//! A host whose questions to the user also appear on pages.

use std::sync::Arc;

use haft_ledger::LedgerHandle;
use haft_tool::{Cancel, Host, HostAnswer, HostRequest, PlanReady, ToolError, UserQuestion};

use super::{
    AnswerContent, FirstAnswer, SharedAnswer, SharedQuestion, first_answer, local_answer, not_shown,
};

pub(crate) struct SharedHost {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) ledger: Arc<LedgerHandle>,
}

impl SharedHost {
    /// The first answer. If it comes from a page, the host is told.
    fn first_answer<T>(
        &self,
        body: &(dyn Fn() -> SharedQuestion + Sync),
        local: &dyn Fn(&Cancel) -> T,
        recorded: &dyn Fn(&T) -> Option<SharedAnswer>,
        cancel: &Cancel,
    ) -> FirstAnswer<T> {
        let answer = first_answer(&self.ledger, self.host.audience(), body, local, recorded, cancel);
        if let FirstAnswer::Remote(SharedAnswer { by, content }) = &answer {
            self.host.answered_elsewhere(by, &content.summary());
        }
        answer
    }
}

/// Adds the reason why no page was asked to the error of a host that has no one to ask.
fn with_reason<T>(answer: Result<T, ToolError>, reason: &ToolError) -> Result<T, ToolError> {
    answer.map_err(|mut error| {
        error.message = format!("{} {}", not_shown(reason), error.message);
        error
    })
}

impl Host for SharedHost {
    fn fallback(&self) -> Option<&dyn Host> {
        Some(self.host.as_ref())
    }

    fn ask(&self, questions: &[UserQuestion], cancel: &Cancel) -> Result<Vec<Vec<String>>, ToolError> {
        let answer = self.first_answer(
            &|| SharedQuestion::Choices { questions: questions.to_vec() },
            &|cancel| self.host.ask(questions, cancel),
            &|answer| {
                let choices = answer.as_ref().ok()?.clone();
                Some(local_answer(AnswerContent::Choices { choices }))
            },
            cancel,
        );
        match answer {
            FirstAnswer::Local(answer) => answer,
            FirstAnswer::NotShown(answer, reason) => with_reason(answer, &reason),
            FirstAnswer::Remote(SharedAnswer { content: AnswerContent::Choices { choices }, .. }) => {
                Ok(choices)
            }
            FirstAnswer::Remote(SharedAnswer { by, .. }) => Err(ToolError::denied(format!(
                "{by} declined to answer. Continue with your best judgement and say what you assumed."
            ))),
        }
    }

    fn may_reach(&self, request: &HostRequest, cancel: &Cancel) -> Option<HostAnswer> {
        let answer = self.first_answer(
            &|| SharedQuestion::of_host(request),
            &|cancel| self.host.may_reach(request, cancel),
            &|answer| {
                Some(local_answer(match (*answer)? {
                    HostAnswer::Refuse => AnswerContent::Deny { reason: None },
                    HostAnswer::Once => AnswerContent::Allow { for_session: false },
                    HostAnswer::Session | HostAnswer::Project => AnswerContent::Allow { for_session: true },
                }))
            },
            cancel,
        );
        match answer {
            FirstAnswer::Local(answer) | FirstAnswer::NotShown(answer, _) => answer,
            FirstAnswer::Remote(SharedAnswer { content, .. }) => Some(match content {
                AnswerContent::Allow { for_session: true } => HostAnswer::Session,
                AnswerContent::Allow { for_session: false } => HostAnswer::Once,
                _ => HostAnswer::Refuse,
            }),
        }
    }

    fn plan_ready(&self, plan: &PlanReady, cancel: &Cancel) -> Result<String, ToolError> {
        let answer = self.first_answer(
            &|| SharedQuestion::of_plan(plan),
            &|cancel| self.host.plan_ready(plan, cancel),
            &|answer| {
                Some(local_answer(match answer {
                    Ok(_) => AnswerContent::Allow { for_session: false },
                    Err(_) => AnswerContent::Deny { reason: None },
                }))
            },
            cancel,
        );
        match answer {
            FirstAnswer::Local(answer) => answer,
            FirstAnswer::NotShown(answer, reason) => with_reason(answer, &reason),
            FirstAnswer::Remote(SharedAnswer { by, content: AnswerContent::Allow { .. } }) => {
                Ok(format!("{by} has approved the plan. Start with it."))
            }
            FirstAnswer::Remote(SharedAnswer {
                by,
                content: AnswerContent::Deny { reason: Some(reason) },
            }) => Err(ToolError::denied(format!("{by} did not approve the plan: {reason}"))),
            FirstAnswer::Remote(SharedAnswer { by, .. }) => {
                Err(ToolError::denied(format!("{by} did not approve the plan.")))
            }
        }
    }
}
