//! A request to a model.

use std::collections::HashSet;

use haft_model::{Conversation, TurnOptions};
use haft_tool::{Definition, Value, json};

use super::failure::ProxyFailure;
use super::fields::Fields;
use super::history::LlmHistory;

/// The longest name of a model or a tool.
const MAX_NAME_BYTES: usize = 256;
const MAX_TEMPERATURE: f64 = 2.0;

/// A request to a model.
pub(super) struct LlmRequest {
    pub(super) conversation: Conversation,
    pub(super) tools: Vec<Definition>,
    pub(super) options: TurnOptions,
    /// Notes for the client about how its request was understood.
    pub(super) notes: Vec<String>,
}

impl LlmRequest {
    /// Reads a request. `own_model`, if there is one, answers whichever model the request names.
    pub(super) fn parse(body: &[u8], own_model: Option<&str>) -> Result<Self, ProxyFailure> {
        let mut fields = Fields::parse(body)?;
        let (model, note) = model(&mut fields, own_model)?;
        let max_tokens = max_tokens(&mut fields)?;
        let temperature = temperature(&mut fields)?;
        let tools = tools(&mut fields)?;
        let LlmHistory { conversation, notes } = LlmHistory::read(&mut fields)?;
        let options = TurnOptions { model: Some(model), max_tokens, temperature, ..TurnOptions::default() };
        Ok(Self { conversation, tools, options, notes: note.into_iter().chain(notes).collect() })
    }
}

/// The model to ask, and a note for the client if it is not the one that the request names.
fn model(fields: &mut Fields, own_model: Option<&str>) -> Result<(String, Option<String>), ProxyFailure> {
    let named = fields.text("model")?.filter(|name| !name.is_empty());
    if let Some(name) = named.as_deref().filter(|name| !is_model_name(name)) {
        let shown: String = name.chars().take(80).collect();
        let what = format!("{shown:?} is not the name of a model; names have letters, digits and -_.:/@+");
        return Err(fields.error("model", &what));
    }
    match (own_model, named) {
        (Some(own), Some(named)) if own != named => {
            Ok((own.to_owned(), Some(format!("{own} answers on this server, in place of {named}."))))
        }
        (Some(own), _) => Ok((own.to_owned(), None)),
        (None, Some(named)) => Ok((named, None)),
        (None, None) => Err(fields.error("model", "expected the name of a model")),
    }
}

/// Names become part of URLs and must not lead to another path.
fn is_model_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@+".contains(&byte);
    name.len() <= MAX_NAME_BYTES
        && name.bytes().all(is_allowed)
        && name.split('/').all(|part| !part.is_empty() && part.bytes().any(|byte| byte != b'.'))
}

fn max_tokens(fields: &mut Fields) -> Result<Option<u32>, ProxyFailure> {
    let Some(number) = fields.integer("max_tokens")? else { return Ok(None) };
    match u32::try_from(number) {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ => Err(fields.error("max_tokens", "expected a number from 1 to 4294967295")),
    }
}

fn temperature(fields: &mut Fields) -> Result<Option<f64>, ProxyFailure> {
    let temperature = fields.number("temperature")?;
    if temperature.is_some_and(|value| !(0.0..=MAX_TEMPERATURE).contains(&value)) {
        return Err(fields.error("temperature", "expected a number from 0 to 2"));
    }
    Ok(temperature)
}

fn tools(fields: &mut Fields) -> Result<Vec<Definition>, ProxyFailure> {
    let (mut tools, mut names) = (Vec::new(), HashSet::new());
    for (number, value) in fields.list("tools")?.unwrap_or_default().into_iter().enumerate() {
        let mut tool = fields.element("tools", number, value)?;
        let name = tool.required_text("name")?;
        if name.len() > MAX_NAME_BYTES {
            return Err(tool.error("name", "expected a shorter name"));
        }
        if !names.insert(name.clone()) {
            return Err(tool.error("name", &format!("{name:?} is the name of two tools")));
        }
        let description = tool.text("description")?.unwrap_or_default();
        let schema = match tool.take("input_schema") {
            None => json!({"type": "object", "properties": {}}),
            Some(Value::Object(schema)) => Value::Object(schema),
            Some(_) => return Err(tool.error("input_schema", "expected a JSON Schema, which is an object")),
        };
        tools.push(Definition::new(name, description, schema, &[]));
    }
    Ok(tools)
}
