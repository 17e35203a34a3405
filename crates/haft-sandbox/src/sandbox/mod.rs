//! What holds a command to its scope: the kernel's rules, the limits, the secrets, and what there is of all that here.

#[cfg(target_os = "linux")]
mod complement;
pub(crate) mod git;
#[cfg(target_os = "linux")]
mod landlock;
mod limits;
mod names;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
mod probe;
mod resolver;
#[cfg(target_os = "linux")]
mod rulesets;
mod search;
mod seatbelt;
mod secrets;
mod stamps;
mod status;
#[cfg(all(test, target_os = "linux"))]
mod tests;
#[cfg(target_os = "linux")]
mod trial;

#[cfg(target_os = "linux")]
pub(crate) use landlock::{Grants, Ruleset, restrict};
#[cfg(target_os = "linux")]
pub(crate) mod kernel {
    //! What the kernel says of itself.
    pub(crate) use super::landlock::abi;
}
pub(crate) use limits::{Limits, apply};
pub(crate) use names::Names;
#[cfg(target_os = "linux")]
pub(crate) use privileges::drop_all;
#[cfg(target_os = "linux")]
pub use probe::probe;
pub(crate) use resolver::Resolver;
#[cfg(target_os = "linux")]
pub(crate) use rulesets::Rulesets;
pub(crate) use search::{Found, MOST_ENTRIES, Searches};
pub use seatbelt::profile;
pub(crate) use secrets::places;
pub use status::{Layer, Level, Status};
