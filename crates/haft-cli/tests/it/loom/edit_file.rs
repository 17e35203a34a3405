//! `edit_file`.

use haft::{ErrorKind, Value, json};

use crate::fixture::runtime::fields;
use crate::loom::loom;

fn edits(path: &str, edits: &[(&str, &str)]) -> Value {
    let edits: Vec<Value> = edits.iter().map(|(old, new)| json!({"old_str": old, "new_str": new})).collect();
    json!({"path": path, "edits": edits})
}

#[tokio::test]
async fn edit_file_replaces_the_first_occurrence_and_counts_bytes() {
    let loom = loom();
    let path = loom.file("a.txt", "one two one");
    let done = loom.value("edit_file", edits("a.txt", &[("one", "three")])).await;
    assert_eq!(done, json!({"path": path, "edits_applied": 1, "original_bytes": 11, "new_bytes": 13}));
    assert_eq!(fields(&done), ["path", "edits_applied", "original_bytes", "new_bytes"]);
    assert_eq!(loom.read("a.txt"), "three two one");
}

#[tokio::test]
async fn edit_file_replaces_all_and_deletes() {
    let loom = loom();
    loom.file("a.txt", "x y x y");
    let all = json!({"path": "a.txt", "edits": [
        {"old_str": "x", "new_str": "z", "replace_all": true}, {"old_str": " y", "new_str": "", "replace_all": false},
    ]});
    assert_eq!(loom.value("edit_file", all).await["edits_applied"], 3);
    assert_eq!(loom.read("a.txt"), "z z y");
}

#[tokio::test]
async fn an_empty_old_str_makes_a_file_with_its_directories_and_appends_to_one() {
    let loom = loom();
    let made = loom.value("edit_file", edits("deep/er/new.txt", &[("", "a\n"), ("a", "b")])).await;
    assert_eq!((&made["original_bytes"], &made["new_bytes"]), (&json!(0), &json!(2)));
    assert_eq!(loom.read("deep/er/new.txt"), "b\n");
    loom.value("edit_file", edits("deep/er/new.txt", &[("", "c\n")])).await;
    assert_eq!(loom.read("deep/er/new.txt"), "b\nc\n");
}

#[tokio::test]
async fn one_failing_edit_leaves_the_file_untouched() {
    let loom = loom();
    loom.file("a.txt", "one two");
    let (kind, said) = loom.fails("edit_file", edits("a.txt", &[("one", "1"), ("three", "3")])).await;
    assert_eq!(kind, ErrorKind::TargetNotFound);
    assert!(said.starts_with("TargetNotFound: edits[1]: old_str was not found in"), "{said}");
    assert_eq!(loom.read("a.txt"), "one two");
    assert_eq!(loom.fails("edit_file", edits("none", &[("a", "b")])).await.0, ErrorKind::TargetNotFound);
    assert!(!loom.root().join("none").exists());
}

#[tokio::test]
async fn edit_file_never_leaves_the_workspace() {
    let loom = loom();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), loom.root().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("new"), loom.root().join("dangling")).unwrap();
    let direct = outside.path().join("deep/er/new");
    for path in [direct.to_str().unwrap(), "../new", "link/new", "dangling"] {
        let (kind, said) = loom.fails("edit_file", edits(path, &[("", "x")])).await;
        assert_eq!(kind.loom_name(), "PathOutsideWorkspace", "{path}: {said}");
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    for arguments in [json!({"path": "a"}), json!({"path": "a", "edits": [{"old_str": ""}]})] {
        assert_eq!(loom.fails("edit_file", arguments).await.0, ErrorKind::InvalidArguments);
    }
}
