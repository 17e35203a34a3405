//! Requests that come back with questions: they are answered and asked again, so often and no more.

use haft_tool::Cancel;
use serde_json::{Map, Value};

use super::conversation::{Conversation, Question};
use super::listing::shown;
use super::patience::Patience;
use super::{ClientError, McpError};

/// How many questions may come at once.
const MOST_QUESTIONS: usize = 16;

/// Asks until the answer is complete; `patience` is made anew for each round.
pub(super) fn settle<'a>(
    conversation: &Conversation,
    mut question: Question,
    cancel: &Cancel,
    patience: impl Fn() -> Patience<'a>,
) -> Result<Value, ClientError> {
    let method = question.method;
    for _ in 0..=conversation.options.limits.max_input_rounds {
        let result = conversation.ask(&question, &patience())?;
        let modern = conversation.version().is_stateless();
        match result.get("resultType").map(|kind| kind.as_str().ok_or(kind)) {
            None | Some(Ok("complete")) => return Ok(result),
            Some(Ok("input_required")) if modern => answer(conversation, &mut question, &result, cancel)?,
            Some(other) => {
                let kind = other.map_or_else(shown, |kind| shown(&Value::from(kind)));
                return Err(ClientError::invalid_message(format!(
                    "`{method}` gave a result of the kind {kind}, which nobody knows"
                )));
            }
        }
    }
    let rounds = conversation.options.limits.max_input_rounds;
    Err(ClientError::too_large(format!("`{method}` came back with questions more than {rounds} times")))
}

/// Puts the answers to a result's questions into the request.
fn answer(
    conversation: &Conversation,
    question: &mut Question,
    result: &Value,
    cancel: &Cancel,
) -> Result<(), ClientError> {
    let method = question.method;
    let Value::Object(params) = &mut question.params else {
        return Err(ClientError::invalid_message(format!("`{method}` came back with questions")));
    };
    // What belonged to the round before does not belong to this one.
    params.remove("inputResponses");
    params.remove("requestState");
    if let Some(state) = result.get("requestState").filter(|state| !state.is_null()) {
        params.insert("requestState".to_owned(), state.clone());
    }
    let asked = match result.get("inputRequests") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(asked)) if asked.len() <= MOST_QUESTIONS => asked,
        Some(Value::Object(_)) => {
            return Err(ClientError::too_large(format!(
                "`{method}` came back with more than {MOST_QUESTIONS} questions"
            )));
        }
        Some(_) => {
            return Err(ClientError::invalid_message(format!(
                "`{method}` came back with questions that are none"
            )));
        }
    };
    let mut answers = Map::new();
    for (key, one) in asked {
        let wants = one.get("method").and_then(Value::as_str).unwrap_or_default();
        let given = one.get("params").unwrap_or(&Value::Null);
        let given = conversation.ear.answer(wants, given, cancel).map_err(|error| {
            let wants = super::portable::clean_line(wants, 60);
            ClientError::new(
                McpError::Unsupported,
                format!("`{method}` wants `{wants}` of us, which it does not get: {error}"),
            )
        })?;
        answers.insert(key.clone(), given);
        if cancel.is_cancelled() {
            return Err(ClientError::new(McpError::Cancelled, format!("`{method}` was cancelled")));
        }
    }
    params.insert("inputResponses".to_owned(), Value::Object(answers));
    Ok(())
}
