//! The loop over a real runtime, with models that play a script.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and looks at the files itself"
)]

mod answer_schema;
mod cancel;
mod compaction;
mod fixture;
mod instructions;
mod limits;
mod many;
mod resume;
mod rounds;
