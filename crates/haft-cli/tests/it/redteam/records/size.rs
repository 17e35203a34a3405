//! What the ledger takes on the disk.

use crate::fixture::sandbox::{SandboxFixture, User};

/// The megabytes that the ledger takes.
fn ledger_megabytes(fixture: &SandboxFixture) -> u64 {
    let size = fixture.unsandboxed("du -sm $HAFT_HOME | cut -f1").stdout;
    size.trim().parse().unwrap()
}

#[test]
fn e46_small_changes_of_a_large_file_are_stored_once() {
    let fixture = SandboxFixture::new(User::Current);
    assert_eq!(fixture.unsandboxed("head -c 10M /dev/urandom > db; cp db db.0").code, 0);
    for n in 1..=5 {
        let change = format!(
            "printf {n} | dd of=db bs=1 seek=$(({n} * 1500000)) conv=notrunc status=none; echo {n} >> db"
        );
        assert_eq!(fixture.inside(&change).code, 0);
    }
    let megabytes = ledger_megabytes(&fixture);
    assert!(megabytes < 22, "{megabytes} MB for a file of 10 MB that changed a little five times");
    for _ in 1..=5 {
        let undo = fixture.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 0, "{}", undo.stderr);
    }
    assert_eq!(fixture.unsandboxed("cmp db db.0").code, 0);
    let megabytes = ledger_megabytes(&fixture);
    assert!(megabytes < 30, "{megabytes} MB after five undos");
    assert_eq!(fixture.haft(&["gc", "--older-than", "0d"]).code, 0);
    let megabytes = ledger_megabytes(&fixture);
    assert!(megabytes < 20, "{megabytes} MB after the calls were removed");
}

#[test]
fn e25_moved_directory_is_not_stored() {
    let fixture = SandboxFixture::new(User::Current);
    assert_eq!(fixture.unsandboxed("mkdir d; head -c 20M /dev/urandom > d/f").code, 0);
    assert_eq!(fixture.inside("for i in $(seq 5); do mv d e; mv e d; done; mv d e").code, 0);
    let megabytes = ledger_megabytes(&fixture);
    assert!(megabytes < 5, "{megabytes}");
}
