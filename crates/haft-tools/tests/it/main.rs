//! Tools of the dialects in a World in memory: files, processes and network are scripted.
#![allow(clippy::unwrap_used, clippy::allow_attributes, reason = "a test that cannot go on has failed")]

mod claude;
mod fixture;
mod oracle;
mod search;
