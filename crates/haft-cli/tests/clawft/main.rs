//! clawft's document (004), tool by tool.
#![allow(clippy::disallowed_methods, reason = "tests look at the machine from outside")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod commands;
mod cut;
mod examples;
mod files;
#[path = "../house/mod.rs"]
mod house;
mod memory;
mod registry;
#[path = "../stage/mod.rs"]
mod stage;

use stage::Stage;

fn clawft() -> Stage {
    Stage::of(haft::clawft())
}
