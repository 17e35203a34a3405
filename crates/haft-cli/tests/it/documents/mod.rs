//! What the source documents say of the tools and is held nowhere else: parameters, time limits, requests, types.

mod claude;
mod loom_types;
mod omega;
mod parameters;
mod requests;
mod shells;

use std::sync::Arc;

use haft::{HttpResponse, Settings, Value, dialects};

use crate::fixture::recording_world::{self, Recorder};
use crate::fixture::runtime::RuntimeFixture;

/// A dialect's tools with every command and request recorded by an recorder that answers in its place.
fn recorded(dialect: &str, settings: &Settings) -> (RuntimeFixture, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let mut dialect = dialects::by_name(dialect, settings).unwrap();
    let names: Vec<String> = dialect.tools.iter().map(|tool| tool.name().to_owned()).collect();
    dialect.tools = dialect.tools.into_iter().map(|tool| recording_world::record(tool, &recorder)).collect();
    let fixture = RuntimeFixture::with(|mut builder| {
        for name in names {
            builder = builder.allow(name, "test");
        }
        // Loom's default server, as if the user's settings named it.
        builder.dialect(dialect).endpoint("127.0.0.1:8080")
    });
    (fixture, recorder)
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
