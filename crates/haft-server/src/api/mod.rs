//! The HTTP API: its routes, and what their requests and answers share.

mod calls;
mod describe;
pub(crate) mod error;
mod files;
mod messages;
mod openapi;
pub(crate) mod query;
mod questions;
mod routes;
mod rules;
mod runs;
mod sessions;
pub(crate) mod types;
mod undo;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use haft_ledger::Ledger;
use haft_tool::now_ms;
use serde::de::DeserializeOwned;

pub(crate) use calls::live_tail;
pub(crate) use describe::{of_session, of_summary};
use error::ApiError;
pub(crate) use messages::listed_message;
pub(crate) use openapi::document;
use query::Query;
pub(crate) use questions::listed as listed_question;
pub(crate) use routes::{AnswerCost, Route, RouteMatch, find};
use runs::InterruptedTurn;

use crate::access::{Role, forbidden};
use crate::backend::Backend;

/// The path prefix of the API.
pub(crate) const BASE: &str = "/api/v1";

/// What handlers need to answer requests.
pub(crate) struct Api {
    pub(crate) ledger: Ledger,
    pub(crate) backend: Arc<dyn Backend>,
    /// The folder in which the server was started.
    pub(crate) workspace: PathBuf,
    /// The last interrupted turn of each driven session.
    interrupted: Mutex<HashMap<String, InterruptedTurn>>,
}

impl Api {
    pub(crate) fn new(ledger: Ledger, backend: Arc<dyn Backend>, workspace: PathBuf) -> Self {
        Self { ledger, backend, workspace, interrupted: Mutex::default() }
    }
}

/// An API request.
pub(crate) struct ApiRequest<'a> {
    /// The variable parts of the path.
    pub(crate) parameters: Vec<String>,
    pub(crate) query: Query,
    pub(crate) body: &'a [u8],
    pub(crate) role: Role,
    /// How receipts name the person who asks.
    pub(crate) person: &'a str,
}

impl ApiRequest<'_> {
    /// The body, parsed.
    fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_json::from_slice(self.body).map_err(|error| {
            ApiError::bad_request(format!("The body is not valid: {error}. See openapi.json."))
        })
    }

    /// Refuses the request if its token has a lower role.
    pub(crate) fn require(&self, role: Role) -> Result<(), ApiError> {
        if self.role >= role { Ok(()) } else { Err(forbidden(role, self.role).into()) }
    }

    fn text(&self) -> &str {
        self.parameters.first().map_or("", String::as_str)
    }

    fn id(&self) -> Result<i64, ApiError> {
        self.text().parse().map_err(|_| ApiError::not_found(format!("{:?} is not a number.", self.text())))
    }
}

/// The variable parts of a path, percent-decoded.
pub(crate) fn decoded(parameters: Vec<String>) -> Result<Vec<String>, ApiError> {
    let decode = |part: String| {
        let pairs = format!("={}", part.replace('+', "%2B").replace('&', "%26"));
        let (_, value) = url::form_urlencoded::parse(pairs.as_bytes()).next()?;
        (!value.contains('\u{fffd}')).then(|| value.into_owned())
    };
    let decoded: Option<Vec<String>> = parameters.into_iter().map(decode).collect();
    decoded.ok_or_else(|| ApiError::bad_request("The path is not well-formed."))
}

fn meta(api: &Api, request: &ApiRequest<'_>) -> Result<types::Meta, ApiError> {
    Ok(types::Meta {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        role: request.role.name().to_owned(),
        position: api.ledger.feed_position()?,
        workspace: haft_tool::path_to_text(&api.workspace).into_owned(),
        now: now_ms(),
        providers: api.backend.providers(),
    })
}
