//! The contract's parsers, through its public functions.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod fuzz;
