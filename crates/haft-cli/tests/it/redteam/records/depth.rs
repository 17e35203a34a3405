//! Trees of any depth.

use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::tree::{differences, timeless};

#[test]
fn deep_trees_are_undone_and_redone() {
    let fixture = SandboxFixture::new(User::Current);
    let deep = |name: &str| {
        format!(
            "python3 -c \"import os; [(os.mkdir('{name}'), os.chdir('{name}')) for _ in range(600)]; open('f', 'w').write('{name}')\""
        )
    };
    let ran = fixture.unsandboxed(&deep("d"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let before = timeless(&fixture.work(), &[]);
    let ran = fixture.inside(&format!("rm -r d; {}", deep("e")));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let after = timeless(&fixture.work(), &[]);
    assert!(after.len() > 600);
    for (word, expected) in [("undo", &before), ("redo", &after)] {
        let ran = fixture.haft(&[word, "--yes"]);
        assert_eq!(ran.code, 0, "{word}: {}", ran.stderr);
        assert_eq!(differences(expected, &timeless(&fixture.work(), &[])), [] as [String; 0], "{word}");
    }
}

#[test]
fn hundreds_of_directory_moves_are_one_move_each() {
    let fixture = SandboxFixture::new(User::Current);
    assert_eq!(fixture.unsandboxed("for i in $(seq 40); do mkdir d$i; echo $i > d$i/f; done").code, 0);
    let before = timeless(&fixture.work(), &[]);
    let script = "for j in $(seq 10); do for i in $(seq 40); do mv d$i.* d$i.$j 2>/dev/null || mv d$i d$i.$j; done; done";
    assert_eq!(fixture.inside(script).code, 0);
    let show = fixture.haft(&["show", "1", "--json"]).stdout;
    assert_eq!(show.matches("moved_to").count(), 40, "{show}");
    assert_eq!(fixture.haft(&["undo", "--yes"]).code, 0);
    assert_eq!(differences(&before, &timeless(&fixture.work(), &[])), [] as [String; 0]);
}
