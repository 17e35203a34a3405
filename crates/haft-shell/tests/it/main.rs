//! What is found in commands, compared with a table and with bash itself, and the bounds that hostile input meets.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed unwrap fails the test; bash is compared with"
)]

mod bounds;
mod details;
mod fixture;
mod fuzz;
mod table;
mod validity;
