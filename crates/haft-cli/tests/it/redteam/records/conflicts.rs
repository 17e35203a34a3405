//! Undo changes everything or nothing, and nothing that other programs made.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::fixture::cli::RunOutput;
use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::tree::{differences, timeless};
use crate::fixture::wait_until;

#[test]
fn e38_undo_of_a_directory_with_later_files_changes_nothing() {
    SandboxFixture::in_both_modes(User::Current, |fixture| {
        assert_eq!(fixture.unsandboxed("echo old > a; echo old > b").code, 0);
        let before = timeless(&fixture.work(), &[]);
        assert_eq!(fixture.inside("echo new > a; rm b; mkdir d; echo x > d/x; echo y > d/y").code, 0);
        fs::write(fixture.work().join("d/theirs"), "theirs").unwrap();
        let left = timeless(&fixture.work(), &[]);
        let undo = fixture.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 1, "{}", undo.stderr);
        assert!(undo.stdout.contains("d/theirs"), "{}", undo.stdout);
        assert_eq!(differences(&left, &timeless(&fixture.work(), &[])), [] as [String; 0]);
        // With `--force` it also removes the named file, and the redo brings it back.
        let forced = fixture.haft(&["undo", "--yes", "--force"]);
        assert_eq!(forced.code, 0, "{}", forced.stderr);
        assert_eq!(differences(&before, &timeless(&fixture.work(), &[])), [] as [String; 0]);
        assert_eq!(fixture.haft(&["redo", "--yes"]).code, 0);
        assert_eq!(differences(&left, &timeless(&fixture.work(), &[])), [] as [String; 0]);
    });
}

#[test]
fn e37_file_of_another_program_in_a_new_directory_is_not_the_commands() {
    SandboxFixture::in_both_modes(User::Current, |fixture| {
        let script = "mkdir -p new/deep; echo own > new/deep/own; while [ ! -e new/deep/theirs ]; do :; done; echo 2 > new/own";
        let mut haft = fixture.bare(&fixture.program());
        let mut haft = haft.args(["sandbox", "--", "bash", "-c", script]).spawn().unwrap();
        wait_until(|| fixture.path("work/new/deep/own").exists());
        fs::write(fixture.path("work/new/deep/theirs.tmp"), "theirs").unwrap();
        fs::rename(fixture.path("work/new/deep/theirs.tmp"), fixture.path("work/new/deep/theirs")).unwrap();
        assert!(haft.wait().unwrap().success());
        let show = fixture.haft(&["show", "1", "--all"]).stdout;
        assert!(show.contains("new/deep/own") && show.contains("new/own"), "{show}");
        assert!(!show.lines().any(|line| line.starts_with("created") && line.contains("theirs")), "{show}");
        let undo = fixture.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 1, "{}", undo.stderr);
        assert!(undo.stdout.contains("new/deep/theirs"), "{}", undo.stdout);
        assert_eq!(fs::read_to_string(fixture.path("work/new/deep/theirs")).unwrap(), "theirs");
        assert!(fixture.path("work/new/own").exists(), "nothing was undone");
    });
}

#[test]
fn e35_dry_run_does_not_touch_an_unreadable_file() {
    let user = if User::is_root() { User::Unprivileged } else { User::Current };
    SandboxFixture::in_both_modes(user, |fixture| {
        assert_eq!(fixture.unsandboxed("echo old > f").code, 0);
        assert_eq!(fixture.inside("echo new > f; chmod 000 f").code, 0);
        let changed = || {
            let meta = fs::metadata(fixture.path("work/f")).unwrap();
            (meta.ctime(), meta.ctime_nsec())
        };
        let before = changed();
        let preview = fixture.haft(&["undo", "--dry-run"]);
        assert_eq!(preview.code, 0, "{}{}", preview.stdout, preview.stderr);
        assert_eq!(changed(), before, "its mode was changed for a moment");
        assert_eq!(fixture.haft(&["undo", "--yes"]).code, 0);
        assert_eq!(fs::read_to_string(fixture.path("work/f")).unwrap(), "old\n");
    });
}

#[test]
fn e37_file_of_another_program_is_not_the_commands_if_haft_was_killed() {
    SandboxFixture::in_both_modes(User::Current, |fixture| {
        let script = "mkdir -p new/deep; echo own > new/deep/own; mkdir new/deep/dir; mv new/deep/own new/own; touch gone new/gone; rm gone new/gone; touch ready; sleep 600";
        let mut haft = fixture.bare(&fixture.program());
        let mut haft = haft.args(["sandbox", "--", "bash", "-c", script]).spawn().unwrap();
        wait_until(|| fixture.path("work/ready").exists());
        for name in ["work/new/theirs", "work/new/deep/dir/theirs"] {
            fs::write(fixture.path(name), "theirs").unwrap();
        }
        haft.kill().unwrap();
        haft.wait().unwrap();
        wait_until(|| fixture.processes().is_empty());
        let show = fixture.haft(&["show", "1", "--all"]).stdout;
        assert!(
            show.contains("new/own") && show.contains("new/deep/dir") && !show.contains("theirs"),
            "{show}"
        );
        let undo = fixture.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 1, "{}", undo.stderr);
        assert!(undo.stdout.contains("new/theirs") && undo.stdout.contains("dir/theirs"), "{}", undo.stdout);
        for name in ["work/new/theirs", "work/new/deep/dir/theirs"] {
            fs::remove_file(fixture.path(name)).unwrap();
        }
        let undo = fixture.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 0, "{}", undo.stderr);
        assert_eq!(fs::read_dir(fixture.work()).unwrap().count(), 0);
    });
}

#[test]
fn names_like_those_of_an_undo_do_not_mislead_it() {
    // The names are random and created exclusively, so a command cannot create them first. A file that already has such a name
    // is an ordinary file.
    let fixture = SandboxFixture::new(User::Current);
    fixture.file("work/f", "old");
    fixture.file("work/.haft-1123456789abcdef.tmp/0", "kept");
    let before = timeless(&fixture.work(), &[]);
    let script = "echo new > f; mkdir .haft-0123456789abcdef.tmp; echo x > .haft-0123456789abcdef.tmp/0; ln -s / .haft-2123456789abcdef.tmp; echo x > .haft-1123456789abcdef.tmp/0";
    assert_eq!(fixture.inside(script).code, 0);
    let undo = fixture.haft(&["undo", "--yes"]);
    assert_eq!(undo.code, 0, "{}", undo.stderr);
    assert_eq!(differences(&before, &timeless(&fixture.work(), &[])), [] as [String; 0]);
}

/// Runs a command that writes `f` and goes on until `meanwhile` has happened, and undoes it.
fn undone_after(meanwhile: impl FnOnce(&SandboxFixture)) -> (SandboxFixture, RunOutput) {
    let fixture = SandboxFixture::new(User::Current);
    fixture.file("work/f", "orig\n");
    let mut haft = fixture.bare(&fixture.program());
    let script = "echo command > f; echo own > o; touch ready; while [ ! -e go ]; do sleep 0.05; done; echo own > o; rm ready";
    let mut haft = haft.args(["sandbox", "--", "bash", "-c", script]).spawn().unwrap();
    wait_until(|| fixture.work().join("ready").exists());
    meanwhile(&fixture);
    fixture.file("work/go", "");
    assert!(haft.wait().unwrap().success());
    let undo = fixture.haft(&["undo", "--yes", "1"]);
    (fixture, undo)
}

#[test]
fn b16_file_that_another_program_replaced_while_the_command_ran_is_a_conflict() {
    let (fixture, undo) = undone_after(|fixture| {
        assert_eq!(fixture.unsandboxed("echo user > new; mv new f").code, 0);
    });
    assert!(undo.code != 0 && undo.stdout.contains("f was changed while the call ran"), "{}", undo.stdout);
    assert!(!undo.stdout.contains(" o was changed"), "{}", undo.stdout);
    assert_eq!(fs::read_to_string(fixture.work().join("f")).unwrap(), "user\n");
    assert_eq!(fixture.haft(&["undo", "--yes", "--force", "1"]).code, 0);
    assert_eq!(fs::read_to_string(fixture.work().join("f")).unwrap(), "orig\n");
    assert!(!fixture.work().join("o").exists());
}

#[test]
fn b16_file_that_another_call_wrote_while_the_command_ran_is_a_conflict() {
    let (fixture, undo) = undone_after(|fixture| {
        let write = fixture.haft(&["call", "Bash", "command=printf 'call\n' > f"]);
        assert_eq!(write.code, 0, "{}", write.stderr);
    });
    assert!(undo.code != 0 && undo.stdout.contains("by call 2 (Bash)"), "{}", undo.stdout);
    assert_eq!(fs::read_to_string(fixture.work().join("f")).unwrap(), "call\n");
}

#[test]
fn b16_command_that_nothing_interferes_with_has_no_conflict() {
    let (fixture, undo) = undone_after(|_| {});
    assert_eq!(undo.code, 0, "{}{}", undo.stdout, undo.stderr);
    assert_eq!(fs::read_to_string(fixture.work().join("f")).unwrap(), "orig\n");
}
