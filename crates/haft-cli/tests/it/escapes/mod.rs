//! Attempts to get out of the sandbox, by class. Each is a real program that runs inside `haft sandbox`, as root and as an
//! ordinary user, and each time the world outside is looked at afterwards.
//!
//! So that an attempt proves something, the same program is also run without a sandbox where that does no lasting harm: there
//! it must succeed.

mod attempt;
mod devices;
mod environment;
mod exhaustion;
mod files;
mod kernel;
mod links;
mod outside_process;
mod pids_limit;
mod planted;
mod procfs;
mod protected;
mod races;
mod repositories;
mod secrets;
mod signals;
mod sockets;
mod survivors;

use std::collections::BTreeSet;

#[test]
fn there_are_enough_attempts_and_each_has_a_name_of_its_own() {
    let classes = [
        files::TABLE,
        links::TABLE,
        races::TABLE,
        protected::TABLE,
        repositories::TABLE,
        secrets::TABLE,
        procfs::TABLE,
        signals::TABLE,
        sockets::TABLE,
        kernel::TABLE,
        devices::TABLE,
        environment::TABLE,
        survivors::TABLE,
        exhaustion::TABLE,
    ];
    for class in classes {
        let names: BTreeSet<&str> = class.iter().map(|escape| escape.name).collect();
        assert_eq!(names.len(), class.len());
    }
    let count: usize = classes.iter().map(|class| class.len()).sum();
    assert!(count >= 300, "{count} attempts");
}
