//! The built-in operations and the dialects over them.
//!
//! `ops/` does each thing once; a dialect's tool only maps its own names, limits and result shape onto it. Everything
//! reaches the machine through the [`World`](haft_tool::World) it is given.
//!
//! What must never live here: a file opened, a process started or a decision made by any other way.

pub mod dialects;
mod ops;
pub mod settings;

pub use ops::web_search::{FoundPages, SearchHit, WebSearch};
pub use settings::Settings;
