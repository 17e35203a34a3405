//! Policy: rules, modes and the one pure function that decides.
//!
//! [`decide`] takes what a call will touch and says what it may touch, or why not. It reads no file, asks nobody and
//! remembers nothing, so the same question always gets the same answer, with the rule and its origin.
//!
//! What must never live here: I/O, prompts, enforcement (that is haft-world), knowledge of a particular tool.

mod command;
mod decide;
mod mode;
mod places;
mod preset;
mod reach;
mod rule;

pub use decide::{Decided, Policy, Request, decide};
pub use mode::Mode;
pub use preset::Preset;
pub use rule::{Behavior, Rule, Rules};
