//! Pages fetched through the public doors, from servers on this machine.
#![allow(clippy::disallowed_methods, reason = "tests look at the machine from outside")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../house/mod.rs"]
mod house;
mod server;

mod clawft;
mod scope;
mod web_fetch;
