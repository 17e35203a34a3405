//! Requests whose result requires input: the input is added and the request is sent again.

use haft_tool::Cancel;
use serde_json::{Map, Value};

use super::deadline::Deadline;
use super::list::excerpt;
use super::portable::clean_line;
use super::session::{ClientSession, OutgoingRequest};
use super::{ClientError, McpError};

/// Questions of one result.
const MAX_QUESTIONS_PER_RESULT: usize = 16;
/// Characters of a method name that an error repeats.
const MAX_SHOWN_CHARS: usize = 60;

/// Sends a request until its result is complete; `deadline` makes the deadline of each round.
pub(super) fn request<'a>(
    session: &ClientSession,
    mut request: OutgoingRequest,
    cancel: &Cancel,
    deadline: impl Fn() -> Deadline<'a>,
) -> Result<Value, ClientError> {
    let method = request.method;
    let max_rounds = session.options.limits.max_input_rounds;
    for _ in 0..=max_rounds {
        let result = session.request(&request, &deadline())?;
        let is_stateless = session.version().is_stateless();
        match result.get("resultType").map(|kind| kind.as_str().ok_or(kind)) {
            None | Some(Ok("complete")) => return Ok(result),
            Some(Ok("input_required")) if is_stateless => add_input(session, &mut request, &result, cancel)?,
            Some(other) => {
                let kind = other.map_or_else(excerpt, |kind| excerpt(&Value::from(kind)));
                return Err(ClientError::invalid_message(format!(
                    "the result of `{method}` has the unknown type {kind}"
                )));
            }
        }
    }
    Err(ClientError::too_large(format!("`{method}` required input more than {max_rounds} times")))
}

/// Adds the answers to a result's questions to the request.
fn add_input(
    session: &ClientSession,
    request: &mut OutgoingRequest,
    result: &Value,
    cancel: &Cancel,
) -> Result<(), ClientError> {
    let method = request.method;
    let invalid = || ClientError::invalid_message(format!("`{method}` requires input in an invalid form"));
    let Value::Object(params) = &mut request.params else { return Err(invalid()) };
    // Those of the previous round.
    params.remove("inputResponses");
    params.remove("requestState");
    if let Some(state) = result.get("requestState").filter(|state| !state.is_null()) {
        params.insert("requestState".to_owned(), state.clone());
    }
    let questions = match result.get("inputRequests") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(questions)) if questions.len() <= MAX_QUESTIONS_PER_RESULT => questions,
        Some(Value::Object(_)) => {
            return Err(ClientError::too_large(format!(
                "`{method}` asks more than {MAX_QUESTIONS_PER_RESULT} questions at once"
            )));
        }
        Some(_) => return Err(invalid()),
    };
    let mut answers = Map::new();
    for (key, question) in questions {
        let wanted = question.get("method").and_then(Value::as_str).unwrap_or_default();
        let question = question.get("params").unwrap_or(&Value::Null);
        let answer = session.inbound.answer(wanted, question, cancel).map_err(|error| {
            let wanted = clean_line(wanted, MAX_SHOWN_CHARS);
            let why = format!("`{method}` requires `{wanted}`, which was not answered: {error}");
            ClientError::new(McpError::Unsupported, why)
        })?;
        answers.insert(key.clone(), answer);
        if cancel.is_cancelled() {
            return Err(ClientError::cancelled(method));
        }
    }
    params.insert("inputResponses".to_owned(), Value::Object(answers));
    Ok(())
}
