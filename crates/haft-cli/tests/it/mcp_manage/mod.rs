//! `haft mcp list|get|add|remove|trust|install` as a user meets them: what is said, what is changed, and that all of it can be
//! taken back.

mod add;
mod install;
mod list;
mod trust;
