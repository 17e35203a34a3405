//! Text extraction from files of every kind, and the bounds that hostile files meet.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap fails the test")]

mod fuzz;
mod hostile;
mod pdf_writer;
mod text;
