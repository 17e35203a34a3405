//! Loom's document (002), tool by tool, and the properties it asks for.

mod bash;
mod edit_file;
mod files;
mod properties;

use crate::fixture::runtime::RuntimeFixture;

fn loom() -> RuntimeFixture {
    RuntimeFixture::of(haft::loom())
}
