//! Findings of attacks on Haft, by number. Each test shows that a whole class of attacks no longer works.

#[cfg(target_os = "linux")]
mod build_marks;
#[cfg(target_os = "linux")]
mod guard_attacks;
#[cfg(target_os = "linux")]
mod guards;
#[cfg(target_os = "linux")]
mod handles;
#[cfg(target_os = "linux")]
mod hidden;
#[cfg(target_os = "linux")]
mod later_effects;
#[cfg(target_os = "linux")]
mod left_by_calls;
#[cfg(target_os = "linux")]
mod moved_by_others;
#[cfg(target_os = "linux")]
mod named_files;
#[cfg(target_os = "linux")]
mod named_later;
#[cfg(target_os = "linux")]
mod numbers;
#[cfg(target_os = "linux")]
mod objects;
#[cfg(target_os = "linux")]
mod pipes;
mod policy;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod records;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod undone;
#[cfg(target_os = "linux")]
mod user_configs;
#[cfg(target_os = "linux")]
mod witness;
