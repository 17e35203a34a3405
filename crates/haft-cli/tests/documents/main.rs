//! What the source documents say of the tools and is held nowhere else: parameters, time limits, requests, types.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where something is not as it should be")]
#![allow(clippy::disallowed_methods, reason = "tests look at the machine from outside")]

mod claude;
mod ear;
#[path = "../house/mod.rs"]
mod house;
mod loom_types;
mod omega;
mod parameters;
mod requests;
mod shells;
#[path = "../stage/mod.rs"]
mod stage;

use std::sync::Arc;

use haft::{HttpResponse, Settings, Value, dialects};

use ear::Ear;
use stage::Stage;

/// A dialect's tools with every command and request heard by an ear that answers in its place.
fn heard(dialect: &str, settings: &Settings) -> (Stage, Arc<Ear>) {
    let ear = Arc::new(Ear::default());
    let mut dialect = dialects::by_name(dialect, settings).unwrap();
    let names: Vec<String> = dialect.tools.iter().map(|tool| tool.name().to_owned()).collect();
    dialect.tools = dialect.tools.into_iter().map(|tool| ear::to(tool, &ear)).collect();
    let stage = Stage::with(|mut builder| {
        for name in names {
            builder = builder.allow(name, "test");
        }
        builder.dialect(dialect)
    });
    (stage, ear)
}

/// A server's answer in JSON.
fn answer(status: u16, body: &Value) -> HttpResponse {
    let body = body.to_string().into_bytes();
    HttpResponse {
        status,
        status_text: String::new(),
        url: String::new(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        total_bytes: body.len() as u64,
        body,
        more: false,
        redirect: None,
    }
}
