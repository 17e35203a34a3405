//! What servers say, made fit for models and people.

mod text;

pub use text::{clean, clean_line};
