//! Policy: rules, modes, the one pure function that decides, and the tables of guarded names, secrets and addresses.
//!
//! [`decide`] takes what a call will touch and returns what it may touch, or why not, with the rule and its origin. The same
//! input always gives the same result.
//!
//! What must never live here: I/O, prompts, enforcement (the crates of the World), knowledge of a particular tool.

mod access;
mod address;
mod agent_table;
mod command;
mod command_standing;
mod decide;
mod guard;
mod guard_table;
mod mode;
mod network_presets;
mod path_pattern;
mod places;
mod preset;
mod reach;
mod rule;
mod rule_check;
mod rule_text;
mod rule_tools;
mod rules;
mod secret;
mod tables;
mod wildcard;

pub use access::{PathGlobs, glob_at, glob_prefix, read_refusal, write_refusal};
pub use address::{not_public, not_public_host};
pub use agent_table::{AGENT_VARIABLES, AGENTS, AgentProfile};
pub use command::command_specifiers;
pub use decide::{Decided, Policy, Request, decide};
pub use guard::{Guard, build_files, build_rule, guard_in, guarded, holds_settings, settings_rule};
pub use guard_table::{NAME_RULES, NameRule, RunsWhen};
pub use mode::Mode;
pub use network_presets::{NETWORK_PRESETS, NetworkPresets, preset_of_host};
pub use preset::Preset;
pub use rule::{Behavior, Rule};
pub use rule_text::RuleText;
pub use rule_tools::RuleTools;
pub use rules::Rules;
pub use secret::{Secrets, is_secret_name};
pub use tables::{BLOCKLIST, SECRET_TEMPLATES, SECRETS, default_secrets};
pub use wildcard::wildcard;
