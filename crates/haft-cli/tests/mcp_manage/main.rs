//! `haft mcp list|get|add|remove|trust|install` as a user meets them: what is said, what is changed, and that all of it can be
//! taken back.
#![allow(clippy::disallowed_methods, reason = "tests look at the machine from outside")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../house/mod.rs"]
mod house;

mod add;
mod install;
mod list;
mod stage;
mod trust;
