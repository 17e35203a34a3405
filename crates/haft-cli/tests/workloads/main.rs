//! Real work that must go on inside `haft sandbox` just as it does outside, and `haft undo` after it. As root and as an
//! ordinary user.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops where something is not as it should be, and looks at the machine itself"
)]
#![cfg(target_os = "linux")]

mod fidelity;
mod languages;
mod random;
mod refusals;
mod repositories;
mod shell;
#[path = "../escapes/stage.rs"]
mod stage;
mod undo;
#[path = "../escapes/walker.rs"]
mod walker;
mod work;

use std::collections::BTreeSet;

#[test]
fn there_is_enough_work_and_each_has_a_name_of_its_own() {
    let tables = [shell::TABLE, languages::TABLE, repositories::TABLE, fidelity::TABLE];
    let names: BTreeSet<&str> = tables.iter().flat_map(|table| table.iter().map(|work| work.name)).collect();
    let count: usize = tables.iter().map(|table| table.len()).sum();
    assert_eq!(names.len(), count);
    assert!(count >= 60, "{count}");
}
