//! `haft serve`: its API, its stream of events and its page, through the built program.

mod access;
mod content;
mod documented;
mod events;
mod limits;
mod options;
mod page;
mod question_places;
mod questions;
mod rare_entries;
mod roles;
mod runs;
#[cfg(target_os = "linux")]
mod undo;
