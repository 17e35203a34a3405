//! The routes of the API: requests are dispatched by them, and the OpenAPI document is made from them.

use haft_tool::JsonSchema;
use hyper::{Method, StatusCode};
use schemars::{Schema, SchemaGenerator};
use serde::Serialize;

use super::error::ApiError;
use super::query::Query;
use super::{Api, ApiRequest, calls, files, meta, questions, rules, runs, sessions, types, undo};
use crate::access::Role;
use crate::export;
use crate::reply::HttpReply;

/// Makes the schema of a type.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A route.
pub(crate) struct Route {
    /// `GET` or `POST`.
    pub(super) method: &'static str,
    /// The path after [`super::BASE`], with variable parts as `{name}`.
    pub(super) path: &'static str,
    /// The role that it needs.
    pub(crate) role: Role,
    pub(super) summary: &'static str,
    pub(super) query: &'static [QueryParameter],
    /// The body, if it takes one.
    pub(crate) takes: Option<SchemaOf>,
    /// The answer, if it is JSON.
    pub(super) gives: Option<SchemaOf>,
    cost: AnswerCost,
    pub(crate) answer: fn(&Api, &ApiRequest<'_>) -> Result<HttpReply, ApiError>,
}

/// A parameter of the query: its name, its type in the OpenAPI document, and what it means.
pub(super) type QueryParameter = (&'static str, &'static str, &'static str);

/// How long a route's answers may take. Only a few slow ones are made at a time, so that the others do not wait for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerCost {
    /// As long as a database lookup.
    Small,
    /// It may read many calls or files.
    Large,
    /// It reads a whole session.
    Export,
}

impl Route {
    /// The cost of answering a request. A search may read everything.
    pub(crate) fn cost_of(&self, query: &Query) -> AnswerCost {
        let is_search = query.get("q").is_some() || query.get("text").is_some();
        if is_search && self.cost == AnswerCost::Small { AnswerCost::Large } else { self.cost }
    }

    const fn costing(self, cost: AnswerCost) -> Self {
        Self { cost, ..self }
    }
}

/// What a path matches.
pub(crate) enum RouteMatch {
    /// A route, with the variable parts of the path.
    Route(&'static Route, Vec<String>),
    /// The path exists, but only for these other methods.
    OtherMethods(String),
    /// Nothing.
    Nothing,
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn json(value: Result<impl Serialize, ApiError>) -> Result<HttpReply, ApiError> {
    value.map(|value| HttpReply::json(StatusCode::OK, &value))
}

const LIMIT: QueryParameter = ("limit", "integer", "How many entries at most.");
const CALL_FILTERS: &[QueryParameter] = &[
    ("before", "integer", "Only calls with smaller numbers: the `next` of the page before."),
    (
        "after",
        "integer",
        "Only calls with larger numbers, oldest first: 0, or the `next` of the page before.",
    ),
    LIMIT,
    (
        "text",
        "string",
        "Only calls with this text in the tool's name, the arguments, the error or the result.",
    ),
    ("tool", "string", "Only calls of this tool."),
    ("failed", "boolean", "Only calls that failed, were denied or interrupted, or whose command failed."),
    ("changed", "boolean", "Only calls that changed something."),
    ("workspace", "string", "Only calls in this folder."),
];
const PART: &[QueryParameter] = &[
    ("offset", "integer", "How many entries to skip: the `next` of the part before."),
    LIMIT,
    ("path", "string", "Only paths with this text."),
];

/// A route that reads.
const fn get(
    path: &'static str,
    summary: &'static str,
    query: &'static [QueryParameter],
    gives: SchemaOf,
    answer: fn(&Api, &ApiRequest<'_>) -> Result<HttpReply, ApiError>,
) -> Route {
    let gives = Some(gives);
    Route {
        method: "GET",
        path,
        role: Role::View,
        summary,
        query,
        takes: None,
        gives,
        cost: AnswerCost::Small,
        answer,
    }
}

/// A route that takes a body.
const fn post(
    path: &'static str,
    role: Role,
    summary: &'static str,
    takes: Option<SchemaOf>,
    gives: SchemaOf,
    answer: fn(&Api, &ApiRequest<'_>) -> Result<HttpReply, ApiError>,
) -> Route {
    let (gives, cost) = (Some(gives), AnswerCost::Small);
    Route { method: "POST", path, role, summary, query: &[], takes, gives, cost, answer }
}

pub(super) static ROUTES: &[Route] = &[
    get("/meta", "The server, and what the token allows", &[], schema::<types::Meta>, |api, request| {
        json(meta(api, request))
    }),
    get("/now", "What happens now, in all sessions", &[], schema::<types::Now>, |api, _| {
        json(sessions::now(api))
    }),
    get(
        "/sessions",
        "Sessions, newest first",
        &[
            ("q", "string", "Only sessions with this text in their name, folder, calls or messages."),
            ("workspace", "string", "Only sessions in this folder."),
            ("before", "string", "The `next` of the page before."),
            LIMIT,
        ],
        schema::<types::SessionList>,
        |api, request| json(sessions::list(api, &request.query)),
    ),
    get(
        "/sessions/{id}",
        "A session with its run and its subagents",
        &[],
        schema::<types::SessionDetail>,
        |api, request| json(sessions::detail(api, request.text())),
    )
    .costing(AnswerCost::Large),
    get(
        "/sessions/{id}/calls",
        "The calls of a session, newest first",
        CALL_FILTERS,
        schema::<types::CallList>,
        |api, request| json(calls::list(api, Some(request.text()), &request.query)),
    ),
    get(
        "/sessions/{id}/messages",
        "The messages of a session's run, oldest first",
        &[("after", "integer", "Only messages after this event: the `next` of the part before."), LIMIT],
        schema::<types::MessageList>,
        |api, request| json(sessions::messages(api, request.text(), &request.query)),
    )
    .costing(AnswerCost::Large),
    Route {
        gives: None,
        ..get(
            "/sessions/{id}/export",
            "A session as one HTML file that needs no server",
            &[],
            schema::<String>,
            |api, request| export::reply(api, request.text()),
        )
        .costing(AnswerCost::Export)
    },
    get(
        "/calls",
        "The calls of all sessions, newest first",
        CALL_FILTERS,
        schema::<types::CallList>,
        |api, request| json(calls::list(api, None, &request.query)),
    ),
    get("/calls/{id}", "A call", &[], schema::<types::CallDetail>, |api, request| {
        json(calls::detail(api, request.id()?))
    }),
    get("/calls/{id}/changes", "What a call changed", PART, schema::<types::ChangeList>, |api, request| {
        json(calls::changes(api, request.id()?, &request.query))
    })
    .costing(AnswerCost::Large),
    get(
        "/calls/{id}/output",
        "The output of a running call so far, or the whole output of a finished one, in parts",
        &[("from", "integer", "The position of the first byte: the `next` of the part before.")],
        schema::<types::OutputPart>,
        |api, request| json(calls::output(api, request.id()?, &request.query)),
    ),
    get(
        "/diff",
        "The difference of two versions of a file",
        &[
            ("path", "string", "The file, absolute or in the workspace."),
            ("workspace", "string", "The folder of a relative path."),
            ("before", "string", "The hash of the old version; nothing if there was none."),
            ("after", "string", "The hash of the new version; nothing if there is none."),
        ],
        schema::<types::VersionDiff>,
        |api, request| json(files::diff(api, &request.query)),
    )
    .costing(AnswerCost::Large),
    Route {
        gives: None,
        ..get(
            "/blobs/{hash}",
            "The bytes with a hash",
            &[
                ("path", "string", "The file that has them, if the ledger does not."),
                ("workspace", "string", "The folder of a relative path."),
            ],
            schema::<String>,
            |api, request| files::blob(api, request.text(), &request.query),
        )
    },
    get(
        "/files",
        "What changed in a workspace or a session, each path once",
        &[
            ("workspace", "string", "The folder."),
            ("session", "string", "The session, in place of a folder."),
            ("until", "integer", "Only what calls up to this one changed."),
            ("path", "string", "Only paths with this text."),
            ("offset", "integer", "How many entries to skip: the `next` of the part before."),
            LIMIT,
        ],
        schema::<types::ChangedFiles>,
        |api, request| json(files::list(api, &request.query)),
    )
    .costing(AnswerCost::Large),
    get("/questions", "Questions that wait for an answer", &[], schema::<types::QuestionList>, |api, _| {
        json(questions::list(api))
    }),
    get(
        "/questions/{id}",
        "A question, with all that it is about",
        &[],
        schema::<types::QuestionInfo>,
        |api, request| json(questions::detail(api, request.id()?)),
    ),
    post(
        "/questions/{id}/answer",
        Role::Approve,
        "Answers a question; 409 with the question in `details` if it was answered or withdrawn",
        Some(schema::<types::QuestionAnswer>),
        schema::<types::Answered>,
        |api, request| json(questions::answer(api, request, request.id()?)),
    ),
    post(
        "/undo/preview",
        Role::View,
        "What an undo would do",
        Some(schema::<types::UndoRequest>),
        schema::<types::UndoPlanInfo>,
        |api, request| json(undo::preview(api, request)),
    )
    .costing(AnswerCost::Large),
    post(
        "/undo",
        Role::Act,
        "Undoes what the preview showed; 409 with the new plan in `details` if it would do something else by now",
        Some(schema::<types::UndoRequest>),
        schema::<types::UndoDone>,
        |api, request| json(undo::perform(api, request)),
    )
    .costing(AnswerCost::Large),
    get(
        "/rules",
        "The rules of a workspace, with what they decided",
        &[("workspace", "string", "The folder; the server's own if it is not given.")],
        schema::<types::ListedRules>,
        |api, request| json(rules::list(api, &request.query)),
    )
    .costing(AnswerCost::Large),
    post(
        "/rules",
        Role::Act,
        "Adds a rule to the user's settings",
        Some(schema::<types::RuleChange>),
        schema::<types::RuleChanged>,
        |api, request| json(rules::add(api, request)),
    ),
    post(
        "/rules/remove",
        Role::Act,
        "Removes a rule from the user's settings",
        Some(schema::<types::RuleChange>),
        schema::<types::RuleChanged>,
        |api, request| json(rules::remove(api, request)),
    ),
    post(
        "/rules/explain",
        Role::View,
        "What would be decided about a call, and why; makes no call",
        Some(schema::<types::ExplainRequest>),
        schema::<types::Explained>,
        |api, request| json(rules::explain(api, request)),
    ),
    get(
        "/tools",
        "The definitions of tools",
        &[("dialect", "string", "The dialect."), ("workspace", "string", "The folder whose settings apply.")],
        schema::<types::ToolList>,
        |api, request| json(rules::tools(api, &request.query)),
    ),
    post(
        "/runs",
        Role::Act,
        "Starts a run in a process of its own",
        Some(schema::<types::NewRun>),
        schema::<types::RunSession>,
        |api, request| json(runs::start(api, request)),
    ),
    post(
        "/sessions/{id}/prompt",
        Role::Act,
        "Continues the run of a session in a process of its own",
        Some(schema::<types::NewMessage>),
        schema::<types::RunSession>,
        |api, request| json(runs::continue_run(api, request, request.text())),
    ),
    post(
        "/sessions/{id}/interrupt",
        Role::Act,
        "Interrupts the turn of a session's run, as Ctrl-C does",
        None,
        schema::<types::Nothing>,
        |api, request| json(runs::interrupt(api, request.text())),
    ),
];

/// Finds the route of a path after [`super::BASE`].
pub(crate) fn find(method: &Method, path: &str) -> RouteMatch {
    let mut others = Vec::new();
    for route in ROUTES {
        match parameters(route.path, path) {
            Some(found) if route.method == method.as_str() => return RouteMatch::Route(route, found),
            Some(_) => others.push(route.method),
            None => {}
        }
    }
    if others.is_empty() { RouteMatch::Nothing } else { RouteMatch::OtherMethods(others.join(", ")) }
}

/// The variable parts of a path, if it has this form.
fn parameters(form: &str, path: &str) -> Option<Vec<String>> {
    let (mut found, mut given) = (Vec::new(), path.split('/'));
    for part in form.split('/') {
        let given = given.next()?;
        if part.starts_with('{') {
            if given.is_empty() {
                return None;
            }
            found.push(given.to_owned());
        } else if part != given {
            return None;
        }
    }
    given.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_their_routes() {
        let route = |method, path| match find(&method, path) {
            RouteMatch::Route(route, found) => format!("{} {found:?}", route.path),
            RouteMatch::OtherMethods(methods) => methods,
            RouteMatch::Nothing => "nothing".to_owned(),
        };
        assert_eq!(route(Method::GET, "/calls/7/output"), "/calls/{id}/output [\"7\"]");
        assert_eq!(route(Method::GET, "/calls"), "/calls []");
        assert_eq!(route(Method::DELETE, "/rules"), "GET, POST");
        for path in ["", "/", "/calls/", "/calls/7/output/8", "/Calls", "//meta"] {
            assert_eq!(route(Method::GET, path), "nothing", "{path}");
        }
    }
}
