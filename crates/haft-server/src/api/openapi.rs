//! The OpenAPI document, made from the routes and their types.

use haft_tool::{Value, json};
use schemars::generate::SchemaSettings;

use super::routes::{ROUTES, Route};
use super::{BASE, types};

/// The document.
pub(crate) fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        "/components/schemas".clone_into(settings.definitions_path.to_mut());
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let error = generator.subschema_for::<types::ErrorBody>();
    let mut paths = json!({});
    for route in ROUTES {
        let takes = route.takes.map(|schema| schema(&mut generator).to_value());
        let gives = route.gives.map(|schema| schema(&mut generator).to_value());
        let method = route.method.to_ascii_lowercase();
        paths[format!("{BASE}{}", route.path)][method] = operation(route, takes, gives, error.as_value());
    }
    paths[format!("{BASE}/events")]["get"] = events();
    let text = |summary: &str, needs: &str| {
        json!({
            "summary": summary,
            "description": needs,
            "responses": { "200": { "description": "Text", "content": { "text/plain": {} } } },
        })
    };
    paths["/metrics"]["get"] = text("Metrics for Prometheus", "Needs the role `view`.");
    paths["/healthz"]["get"] = text("Whether the server answers", "Needs no token.");
    paths["/healthz"]["get"]["security"] = json!([]);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Haft",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What agents do and did on this machine: sessions, calls, changes, questions, undo.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": generator.take_definitions(true),
        },
    })
}

fn operation(route: &Route, takes: Option<Value>, gives: Option<Value>, error: &Value) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    // Ids of calls and questions are numbers.
    let is_number = |name: &str| name == "id" && !route.path.starts_with("/sessions/");
    let in_path = in_path.map(|name| {
        let kind = if is_number(name) { "integer" } else { "string" };
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": kind } })
    });
    let in_query = route.query.iter().map(|(name, kind, meaning)| {
        json!({ "name": name, "in": "query", "description": meaning, "schema": { "type": kind } })
    });
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let content = match gives {
        Some(schema) => json!({ "application/json": { "schema": schema } }),
        None => json!({ "*/*": {} }),
    };
    let mut operation = json!({
        "summary": route.summary,
        "description": format!("Needs the role `{}`.", route.role.name()),
        "parameters": parameters,
        "responses": {
            "200": { "description": "Done", "content": content },
            "default": { "description": "An error", "content": { "application/json": { "schema": error } } },
        },
    });
    if let Some(schema) = takes {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

/// The event stream, which is not JSON.
fn events() -> Value {
    let after =
        "Only what happened after this position: the id of the last event, or `position` of another answer.";
    json!({
        "summary": "What happens, as it happens",
        "description": "Needs the role `view`. Events `call`, `session`, `question`, `driver` and `message` have ids, which are positions in the ledger's \
            feed; `output` and `answer` are parts of texts that are being written and have none. `reset` says that the client is \
            too far behind: it has to load everything again and go on from the position that the event gives.",
        "parameters": [{ "name": "after", "in": "query", "description": after, "schema": { "type": "integer" } }],
        "responses": { "200": { "description": "Events", "content": { "text/event-stream": {} } } },
    })
}
