//! Questions that wait for a person, and their answers.

use haft_ledger::{Ledger, StoredQuestion};
use haft_runtime::{AnswerContent, SharedAnswer, SharedQuestion, effect_line};
use haft_tool::{Effect, ErrorKind, ToolError, Value, json, path_to_text};

use super::error::ApiError;
use super::types::{AnswerHold, Answered, QuestionAnswer, QuestionInfo, QuestionList, RuleChange};
use super::{Api, ApiRequest};
use crate::access::Role;

/// Lists and events leave out the body of a longer question.
const MAX_LISTED_BYTES: usize = 64 << 10;

/// The open questions, oldest first.
pub(super) fn open(ledger: &Ledger) -> Result<Vec<QuestionInfo>, ToolError> {
    Ok(ledger.open_questions()?.iter().map(|stored| listed(ledger, stored)).collect())
}

pub(super) fn list(api: &Api) -> Result<QuestionList, ApiError> {
    Ok(QuestionList { questions: open(&api.ledger)? })
}

/// A question for a list or an event: without its body if that is long.
pub(crate) fn listed(ledger: &Ledger, stored: &StoredQuestion) -> QuestionInfo {
    let mut question = of_stored(ledger, stored);
    if question.body.to_string().len() > MAX_LISTED_BYTES {
        (question.body, question.is_cut) = (Value::Null, true);
    }
    question
}

/// One question.
pub(super) fn detail(api: &Api, id: i64) -> Result<QuestionInfo, ApiError> {
    Ok(of_stored(&api.ledger, &api.ledger.question(id)?))
}

fn of_stored(ledger: &Ledger, stored: &StoredQuestion) -> QuestionInfo {
    let workspace = ledger.session_with_id(&stored.session).map(|session| session.workspace);
    let answer: Option<SharedAnswer> =
        stored.answer.clone().and_then(|answer| serde_json::from_value(answer).ok());
    QuestionInfo {
        id: stored.id,
        session: stored.session.clone(),
        workspace: workspace.map(|path| path_to_text(&path).into_owned()).unwrap_or_default(),
        asked_at: stored.asked_at,
        is_open: stored.is_open(),
        answered_by: answer.map(|answer| answer.by),
        body: body(&stored.body),
        is_cut: false,
    }
}

/// The body of a question, with its effects as lines.
fn body(stored: &Value) -> Value {
    let mut body = stored.clone();
    if let Ok(SharedQuestion::Permission(question)) = serde_json::from_value(stored.clone()) {
        let effects: Vec<String> = question.effects.iter().map(effect_line).collect();
        body["effects"] = json!(effects);
        body["irreversible"] = json!(question.effects.iter().any(leaves_the_machine));
    }
    body
}

/// Whether an effect may leave this machine, where it cannot be undone.
fn leaves_the_machine(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Reach { .. }
            | Effect::Send { .. }
            | Effect::Unsandboxed
            | Effect::Serve { reaches: true, .. }
    )
}

/// Answers a question. The first answer counts.
pub(super) fn answer(api: &Api, request: &ApiRequest<'_>, id: i64) -> Result<Answered, ApiError> {
    let given: QuestionAnswer = request.json()?;
    let stored = api.ledger.question(id)?;
    let question: SharedQuestion = serde_json::from_value(stored.body.clone()).map_err(ToolError::from)?;
    let is_permanent = matches!(given, QuestionAnswer::Allow { hold: AnswerHold::Always });
    if is_permanent {
        request.require(Role::Act)?;
        offered_rule(&question)?;
    }
    if !stored.is_asked {
        // Its process has died, and nothing else withdraws it while no page is open.
        api.ledger.withdraw(id)?;
    }
    let answer = SharedAnswer { by: request.person.to_owned(), content: answer_content(given, &question)? };
    let answer = serde_json::to_value(&answer).map_err(ToolError::from)?;
    match api.ledger.answer(id, &answer) {
        Ok(()) => {}
        Err(error) if error.kind == ErrorKind::Conflict => {
            let now = listed(&api.ledger, &api.ledger.question(id)?);
            let message = match &now.answered_by {
                Some(by) => format!("The question was answered already, by {by}."),
                None => {
                    "The question was withdrawn: its call was cancelled, or its process has ended.".to_owned()
                }
            };
            return Err(ApiError::conflict(message).with_details(&now));
        }
        Err(error) => return Err(error.into()),
    }
    // Only now, because another answer could have come first.
    let added = is_permanent.then(|| add_rule(api, &stored, &question));
    let (rule_added, rule_failed) = match added.transpose() {
        Ok(added) => (added, None),
        Err(error) => (None, Some(error.message().to_owned())),
    };
    Ok(Answered { rule_added, rule_failed })
}

/// The answer in the form that the asking process reads.
fn answer_content(given: QuestionAnswer, question: &SharedQuestion) -> Result<AnswerContent, ApiError> {
    match (given, question) {
        (QuestionAnswer::Choices { choices }, SharedQuestion::Choices { questions }) => {
            if choices.len() != questions.len() {
                let why = format!("There are {} questions, but {} answers.", questions.len(), choices.len());
                return Err(ApiError::bad_request(why));
            }
            Ok(AnswerContent::Choices { choices })
        }
        (QuestionAnswer::Deny { reason }, _) => {
            Ok(AnswerContent::Deny { reason: reason.filter(|reason| !reason.trim().is_empty()) })
        }
        (QuestionAnswer::Choices { .. }, _) => {
            Err(ApiError::bad_request("This question has no choices: allow or deny it."))
        }
        (QuestionAnswer::Allow { .. }, SharedQuestion::Choices { .. }) => {
            Err(ApiError::bad_request("This question has choices: send them, or deny it."))
        }
        (QuestionAnswer::Allow { hold }, _) => {
            Ok(AnswerContent::Allow { for_session: hold != AnswerHold::Once })
        }
    }
}

/// The rule that would allow the call without a question.
fn offered_rule(question: &SharedQuestion) -> Result<String, ApiError> {
    let rule = match question {
        SharedQuestion::Permission(question) => question.rule.clone(),
        _ => None,
    };
    let why = "No rule can allow this permanently. Allow it once, or for the session.";
    rule.ok_or_else(|| ApiError::bad_request(why))
}

/// Adds the rule that a question offers to the user's settings.
fn add_rule(api: &Api, stored: &StoredQuestion, question: &SharedQuestion) -> Result<String, ApiError> {
    let workspace = api.ledger.session_with_id(&stored.session)?.workspace;
    let changed = api.backend.add_rule(&RuleChange {
        workspace: path_to_text(&workspace).into_owned(),
        verdict: "allow".to_owned(),
        text: offered_rule(question)?,
    })?;
    Ok(format!("{} in {}", changed.rule, changed.file))
}
