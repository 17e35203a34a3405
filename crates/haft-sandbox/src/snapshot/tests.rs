//! Snapshots of real directories.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haft_tool::{Change, Denial, FileContent, Intent, Node, Record, Scope, ToolError, lock};
use tempfile::TempDir;

use super::{SnapshotDiff, SnapshotStore};

/// Keeps the previous contents.
#[derive(Default)]
struct TestRecord(Mutex<HashMap<PathBuf, Vec<u8>>>);

impl Record for TestRecord {
    fn intend(&self, _intents: &mut [Intent<'_>]) -> Result<(), ToolError> {
        Ok(())
    }

    fn changed(&self, _change: Change) {}

    fn not_reversible(&self, _reason: String) {}

    fn witness(
        &self,
        path: &Path,
        _node: &Node,
        content: FileContent<'_>,
    ) -> Result<Option<(haft_tool::Hash, u64)>, ToolError> {
        let bytes = match content {
            FileContent::None => return Ok(None),
            FileContent::Bytes(bytes) => bytes.to_vec(),
            FileContent::Reader(reader) => {
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes).unwrap();
                bytes
            }
        };
        lock(&self.0).insert(path.to_owned(), bytes);
        Ok(None)
    }

    fn witness_directory(&self, _event: haft_tool::DirectoryEvent<'_>) -> Result<(), ToolError> {
        Ok(())
    }

    fn cancel_directory(&self) -> Result<(), ToolError> {
        Ok(())
    }

    fn witnessed(&self, _changes: Vec<Change>) {}

    fn enforced(&self, _how: String) {}

    fn refused(&self, _denials: &[Denial]) {}
}

struct Fixture {
    workspace: TempDir,
    private: TempDir,
    store: SnapshotStore,
}

impl Fixture {
    fn new() -> Self {
        let private = tempfile::tempdir().unwrap();
        let store = SnapshotStore::new(private.path().join("snapshots"));
        Self { workspace: tempfile::tempdir().unwrap(), private, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.workspace.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    /// The changes that `action` makes, by name, and the previous contents.
    fn diff(&self, action: impl FnOnce()) -> (SnapshotDiff, HashMap<PathBuf, Vec<u8>>) {
        let roots = [self.workspace.path().to_owned()];
        let snapshot = self.store.take(&roots, &[]).unwrap();
        action();
        let record = TestRecord::default();
        let diff = snapshot.compare(&Scope::of(self.workspace.path()), &record).unwrap();
        (diff, record.0.into_inner().unwrap())
    }

    fn copies(&self) -> usize {
        let directories = fs::read_dir(self.private.path().join("snapshots")).unwrap().flatten();
        directories.map(|directory| fs::read_dir(directory.path()).unwrap().count()).sum()
    }
}

fn names(diff: &SnapshotDiff, fixture: &Fixture) -> Vec<String> {
    let name =
        |change: &Change| change.path.strip_prefix(fixture.workspace.path()).unwrap().display().to_string();
    let mut names: Vec<_> = diff.changes.iter().map(name).collect();
    names.sort();
    names
}

#[test]
fn changed_and_deleted_content_is_kept() {
    let fixture = Fixture::new();
    for name in ["changed", "deleted", "kept"] {
        fixture.write(name, &format!("old {name}"));
    }
    let (diff, previous) = fixture.diff(|| {
        fixture.write("changed", "NEW CHANGED");
        fs::remove_file(fixture.path("deleted")).unwrap();
        fs::create_dir(fixture.path("new")).unwrap();
        fixture.write("new/file", "x");
    });
    assert_eq!(names(&diff, &fixture), ["changed", "deleted", "new", "new/file"]);
    assert_eq!(previous[&fixture.path("changed")], b"old changed");
    assert_eq!(previous[&fixture.path("deleted")], b"old deleted");
    assert!(diff.losses.is_empty(), "{:?}", diff.losses);
}

#[test]
fn change_right_after_the_snapshot_is_found() {
    let fixture = Fixture::new();
    for round in 0..50 {
        fixture.write("file", &format!("{round:04}"));
        let (diff, previous) = fixture.diff(|| fixture.write("file", "same"));
        assert_eq!(names(&diff, &fixture), ["file"], "{round}");
        assert_eq!(previous[&fixture.path("file")], format!("{round:04}").as_bytes());
    }
}

#[test]
fn modes_links_and_types_are_compared() {
    let fixture = Fixture::new();
    fixture.write("mode", "x");
    fixture.write("type", "x");
    fs::create_dir(fixture.path("dir")).unwrap();
    symlink("old", fixture.path("link")).unwrap();
    let (diff, _) = fixture.diff(|| {
        fs::set_permissions(fixture.path("mode"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(fixture.path("dir"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::remove_file(fixture.path("link")).unwrap();
        symlink("new", fixture.path("link")).unwrap();
        fs::remove_file(fixture.path("type")).unwrap();
        fs::create_dir(fixture.path("type")).unwrap();
    });
    assert_eq!(names(&diff, &fixture), ["dir", "link", "mode", "type"]);
    let link = diff.changes.iter().find(|change| change.path.ends_with("link")).unwrap();
    assert_eq!(link.before, Node::link("old"));
    assert!(diff.losses.is_empty(), "{:?}", diff.losses);
}

#[test]
fn nothing_changed_means_no_changes() {
    let fixture = Fixture::new();
    fixture.write("file", "x");
    fs::create_dir(fixture.path("dir")).unwrap();
    let (diff, _) = fixture.diff(|| {
        fixture.write("dir/temporary", "");
        fs::remove_file(fixture.path("dir/temporary")).unwrap();
    });
    assert!(diff.changes.is_empty() && diff.losses.is_empty(), "{diff:?}");
}

#[test]
fn entries_of_a_directory_that_was_not_listed_are_not_new() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("dir")).unwrap();
    fixture.write("dir/old", "x");
    let mut snapshot = fixture.store.take(&[fixture.workspace.path().to_owned()], &[]).unwrap();
    snapshot.before.remove(&fixture.path("dir/old"));
    snapshot.unlisted.insert(fixture.path("dir"));
    fixture.write("new", "x");
    let diff = snapshot.compare(&Scope::of(fixture.workspace.path()), &TestRecord::default()).unwrap();
    assert_eq!(names(&diff, &fixture), ["new"]);
    assert!(diff.losses[0].starts_with("1 directory was not compared"), "{:?}", diff.losses);
}

#[test]
fn files_over_the_bound_are_reported_as_lost() {
    let fixture = Fixture::new();
    let large = fs::File::create(fixture.path("large")).unwrap();
    large.set_len(64 << 20).unwrap();
    let (diff, _) = fixture.diff(|| fs::remove_file(fixture.path("large")).unwrap());
    // Where the file system can clone files there is no bound.
    let is_kept = diff.losses.is_empty();
    assert!(is_kept || diff.losses[0].starts_with("the previous content of 1 file ("), "{:?}", diff.losses);
}

#[test]
fn copies_are_removed_with_the_files_and_with_the_session() {
    let fixture = Fixture::new();
    fixture.write("a", "1");
    fixture.write("b", "2");
    fixture.diff(|| fs::remove_file(fixture.path("a")).unwrap());
    assert_eq!(fixture.copies(), 2);
    fixture.diff(|| {});
    assert_eq!(fixture.copies(), 1);
    fixture.store.clear();
    assert_eq!(fixture.copies(), 0);
}

#[test]
fn what_would_run_programs_is_restored() {
    let fixture = Fixture::new();
    fixture.write(".mcp.json", "mine");
    fs::create_dir(fixture.path(".claude")).unwrap();
    fixture.write(".claude/settings.json", "mine");
    let (diff, _) = fixture.diff(|| {
        for directory in ["repo/objects", "repo/refs"] {
            fs::create_dir_all(fixture.path(directory)).unwrap();
        }
        fixture.write("repo/HEAD", "ref: refs/heads/main\n");
        fixture.write("repo/config", "[core]\n\tfsmonitor = ./evil\n");
        fixture.write(".mcp.json", "evil");
        fs::remove_dir_all(fixture.path(".claude")).unwrap();
    });
    assert!(!fixture.path("repo/config").exists());
    for name in [".mcp.json", ".claude/settings.json"] {
        assert_eq!(fs::read_to_string(fixture.path(name)).unwrap(), "mine", "{name}");
    }
    assert_eq!(diff.denials.len(), 3, "{:?}", diff.denials);
    let names = names(&diff, &fixture);
    assert!(!names.iter().any(|name| name.contains("json") || name.contains("config")), "{names:?}");
}
