//! How much disk space the ledger takes, and how much is read for it.

use std::fs;

use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::wait_until;

/// The megabytes that the ledger takes.
fn ledger_megabytes(fixture: &SandboxFixture) -> u64 {
    let size = fixture.unsandboxed("du -sm $HAFT_HOME | cut -f1").stdout;
    size.trim().parse().unwrap()
}

#[test]
fn e46_small_changes_of_a_large_file_are_stored_once() {
    SandboxFixture::in_both_modes(User::Current, |fixture| {
        assert_eq!(fixture.unsandboxed("head -c 10M /dev/urandom > db; cp db db.0").code, 0);
        for n in 1..=5 {
            let change = format!(
                "printf {n} | dd of=db bs=1 seek=$(({n} * 1500000)) conv=notrunc status=none; echo {n} >> db"
            );
            assert_eq!(fixture.inside(&change).code, 0);
        }
        let megabytes = ledger_megabytes(fixture);
        assert!(megabytes < 22, "{megabytes} MB for a file of 10 MB that changed a little five times");
        for _ in 1..=5 {
            let undo = fixture.haft(&["undo", "--yes"]);
            assert_eq!(undo.code, 0, "{}", undo.stderr);
        }
        assert_eq!(fixture.unsandboxed("cmp db db.0").code, 0);
        let megabytes = ledger_megabytes(fixture);
        assert!(megabytes < 30, "{megabytes} MB after five undos");
        assert_eq!(fixture.haft(&["gc", "--older-than", "0d"]).code, 0);
        let megabytes = ledger_megabytes(fixture);
        assert!(megabytes < 20, "{megabytes} MB after the calls were removed");
    });
}

#[test]
fn e25_moved_directory_is_not_stored() {
    SandboxFixture::in_both_modes(User::Current, |fixture| {
        assert_eq!(fixture.unsandboxed("mkdir d; head -c 20M /dev/urandom > d/f").code, 0);
        assert_eq!(fixture.inside("for i in $(seq 5); do mv d e; mv e d; done; mv d e").code, 0);
        let megabytes = ledger_megabytes(fixture);
        assert!(megabytes < 5, "{megabytes}");
    });
}

#[test]
fn large_file_is_read_once_before_a_change() {
    const FILE_BYTES: u64 = 30 << 20;
    let fixture = SandboxFixture::new(User::Current);
    assert_eq!(fixture.unsandboxed(&format!("head -c {FILE_BYTES} /dev/urandom > db; cp db db.0")).code, 0);
    let script = "exec 5>> db; touch ready; until [ -e go ]; do sleep 0.01; done; echo x >&5";
    let mut haft = fixture.bare(&fixture.program());
    let mut haft = haft.args(["sandbox", "--", "bash", "-c", script]).spawn().unwrap();
    wait_until(|| fixture.path("work/ready").exists());
    let io = fs::read_to_string(format!("/proc/{}/io", haft.id())).unwrap();
    let read: u64 = io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap();
    assert!((FILE_BYTES..FILE_BYTES + (10 << 20)).contains(&read), "{read} bytes were read");
    fs::write(fixture.path("work/go"), "").unwrap();
    assert!(haft.wait().unwrap().success());
    assert!(fixture.haft(&["show", "1"]).stdout.contains("reversible  yes"));
    fs::remove_file(fixture.path("work/go")).unwrap();
    assert_eq!(fixture.haft(&["undo", "--yes"]).code, 0);
    assert_eq!(fixture.unsandboxed("cmp db db.0").code, 0);
}

#[test]
fn large_file_that_was_only_opened_is_no_change() {
    let fixture = SandboxFixture::new(User::Current);
    assert_eq!(fixture.unsandboxed("head -c 200000 /dev/urandom > db; ln db link").code, 0);
    // Changes within one tick of the clock, and those that keep the size, are noticed.
    assert_eq!(fixture.inside("true <> db; echo other > f").code, 0);
    let show = fixture.haft(&["show", "1"]).stdout;
    assert!(!show.contains("work/db") && show.contains("reversible  yes"), "{show}");
    assert_eq!(fixture.unsandboxed("cp db db.0; touch -d 2020-01-01 db").code, 0);
    assert_eq!(
        fixture
            .inside(
                "printf xxxxxxxx | dd of=db bs=8 seek=9000 conv=notrunc status=none; touch -d 2020-01-01 db"
            )
            .code,
        0
    );
    assert!(fixture.haft(&["show", "2"]).stdout.contains("work/db"));
    assert_eq!(fixture.haft(&["undo", "--yes"]).code, 0);
    assert_eq!(fixture.unsandboxed("cmp db db.0").code, 0);
}

#[test]
fn e21_huge_files_are_not_hashed_and_the_rest_is_undone() {
    SandboxFixture::in_both_modes(User::Current, |fixture| {
        assert_eq!(
            fixture.unsandboxed("truncate -s 1500G huge; truncate -s 1500G gone; echo old > f").code,
            0
        );
        assert_eq!(fixture.inside("true <> huge; truncate -s 1500G new; echo new > f").code, 0);
        assert!(fixture.haft(&["show", "1"]).stdout.contains("reversible  yes"));
        let undo = fixture.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 0, "{}", undo.stderr);
        assert!(!fixture.path("work/new").exists());
        // Also if the size stays the same.
        assert_eq!(
            fixture.inside("printf x | dd of=huge conv=notrunc status=none; rm gone; echo new > f").code,
            0
        );
        let show = fixture.haft(&["show", "3"]).stdout;
        assert!(show.contains("partly") && show.contains("too large") && show.contains("huge"), "{show}");
        let undo = fixture.haft(&["undo", "--yes", "3"]);
        assert_eq!(undo.code, 0, "{}{}", undo.stdout, undo.stderr);
        assert_eq!(fs::read_to_string(fixture.path("work/f")).unwrap(), "old\n");
    });
}
