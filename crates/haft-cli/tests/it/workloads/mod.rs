//! Real work that must go on inside `haft sandbox` just as it does outside, and `haft undo` after it. As root and as an
//! ordinary user.

mod fidelity;
mod languages;
mod programs;
mod random;
mod refusals;
mod repositories;
mod shell;
mod undo;
mod work;

use std::collections::BTreeSet;

#[test]
fn there_is_enough_work_and_each_has_a_name_of_its_own() {
    let tables = [shell::TABLE, languages::TABLE, programs::TABLE, repositories::TABLE, fidelity::TABLE];
    let names: BTreeSet<&str> = tables.iter().flat_map(|table| table.iter().map(|work| work.name)).collect();
    let count: usize = tables.iter().map(|table| table.len()).sum();
    assert_eq!(names.len(), count);
    assert!(count >= 60, "{count}");
}
