//! Documents that are more than text: PDFs and notebooks, through the program and through the library.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on has failed")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../house/mod.rs"]
mod house;
mod notebooks;
#[path = "../../../haft-pdf/tests/it/pdf_writer.rs"]
mod pdf_writer;
mod pdfs;
mod random_notebooks;
#[path = "../stage/mod.rs"]
mod stage;
