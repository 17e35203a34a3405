//! Loom's document (002), tool by tool, and the properties it asks for.
#![allow(clippy::disallowed_methods, reason = "tests look at the machine from outside")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bash;
mod edit_file;
mod files;
mod properties;
#[path = "../stage/mod.rs"]
mod stage;

use stage::Stage;

fn loom() -> Stage {
    Stage::of(haft::loom())
}
