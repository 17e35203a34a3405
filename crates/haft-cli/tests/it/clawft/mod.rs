//! clawft's document (004), tool by tool.

mod commands;
mod cut;
mod examples;
mod files;
mod memory;
mod registry;
mod servers;

use crate::fixture::runtime::RuntimeFixture;

fn clawft() -> RuntimeFixture {
    RuntimeFixture::of(haft::clawft())
}
