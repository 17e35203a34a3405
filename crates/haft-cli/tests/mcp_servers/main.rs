//! Servers that people have, and servers that mean no good, held by the built program: what they may do, who trusts them, how
//! they come and go.
#![allow(clippy::disallowed_methods, reason = "tests look at the machine from outside")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../house/mod.rs"]
mod house;
#[path = "../peers/mod.rs"]
mod peers;

mod far;
mod known;
mod lives;
mod rack;
mod scope;
mod through;
mod trust;
