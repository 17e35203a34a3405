//! Undo through the library restores the exact tree.

use std::path::Path;

use haft::{CallOptions, UndoTarget, json};

use crate::fixture::runtime::Directories;

/// Path, mode and content (bytes or link target) of every entry of a tree, read without Haft.
fn tree(root: &Path) -> Vec<(String, u32, Vec<u8>)> {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    let mut found = Vec::new();
    let mut todo = vec![root.to_owned()];
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let bytes = if meta.is_symlink() {
                path.read_link().unwrap().as_os_str().as_bytes().to_vec()
            } else if meta.is_dir() {
                todo.push(path.clone());
                b"<dir>".to_vec()
            } else {
                std::fs::read(&path).unwrap()
            };
            found.push((
                path.strip_prefix(root).unwrap().display().to_string(),
                meta.permissions().mode(),
                bytes,
            ));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn undo_restores_the_exact_tree_after_random_sequences_of_50_calls() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    for seed in 1..=12_u64 {
        let memory = Path::new("/dev/shm");
        let place = |name: &str| {
            let builder = tempfile::Builder::new().prefix(name).to_owned();
            if memory.is_dir() { builder.tempdir_in(memory).unwrap() } else { builder.tempdir().unwrap() }
        };
        let fixture = Directories { folder: place("ws"), home: place("home") };
        let root = fixture.folder.path();
        std::fs::create_dir_all(root.join("d0/d1")).unwrap();
        for (name, mode) in [("f0", 0o644), ("f1", 0o755), ("d0/f2", 0o600), ("d0/d1/f3", 0o640)] {
            std::fs::write(root.join(name), format!("original {name}\n")).unwrap();
            std::fs::set_permissions(root.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        symlink("f0", root.join("link")).unwrap();
        symlink("d0", root.join("dirlink")).unwrap();
        let before = tree(root);
        let haft = fixture.builder().build().unwrap();
        let mut rng = seed;
        let mut below = |bound: u64| {
            rng ^= rng << 13;
            rng ^= rng >> 7;
            rng ^= rng << 17;
            rng % bound
        };
        let names = [
            "f0",
            "f1",
            "d0/f2",
            "d0/d1/f3",
            "link",
            "dirlink/f2",
            "new/a/b",
            "new/c",
            "d0/x/y/z",
            "dirlink/n",
        ];
        let mut states = vec![before.clone()];
        for step in 0..50 {
            let name = names[usize::try_from(below(names.len() as u64)).unwrap()];
            let path = haft.workspace().join(name);
            let arguments = match below(3) {
                0 => (
                    "Edit",
                    json!({"file_path": path, "old_string": "o", "new_string": format!("<{step}>"), "replace_all": true}),
                ),
                _ => (
                    "Write",
                    json!({"file_path": path, "content": format!("step {step} {}\n", "o".repeat(usize::try_from(below(5)).unwrap()))}),
                ),
            };
            haft.call(arguments.0, arguments.1).await;
            if below(10) == 0 {
                let preview = haft.undo_preview(&UndoTarget::Last);
                if let Ok(preview) = preview {
                    haft.undo(&preview, false, CallOptions::default()).await.unwrap();
                }
            }
            states.push(tree(root));
        }
        let session = haft.session().unwrap();
        let preview = haft.undo_preview(&UndoTarget::Session(session)).unwrap();
        assert_eq!(preview.conflicts, vec![], "seed {seed}");
        let undone = haft.undo(&preview, false, CallOptions::default()).await.unwrap();
        assert!(!undone.output.is_error(), "seed {seed}: {}", undone.output.as_text());
        assert_eq!(tree(root), before, "seed {seed}");
        let redo = haft.undo_preview(&UndoTarget::LastUndo).unwrap();
        haft.undo(&redo, false, CallOptions::default()).await.unwrap();
        assert_eq!(&tree(root), states.last().unwrap(), "seed {seed}: and the undo can be undone");
    }
}

#[tokio::test]
async fn one_by_one_undo_walks_back_through_every_state() {
    let fixture = Directories::new();
    let haft = fixture.builder().build().unwrap();
    let path = haft.workspace().join("deep/er/a.txt");
    let mut states = vec![tree(fixture.folder.path())];
    for text in ["one\n", "two\n", "three\n"] {
        haft.call("Write", json!({"file_path": path, "content": text})).await;
        states.push(tree(fixture.folder.path()));
    }
    while let Some(_gone) = states.pop() {
        let Some(earlier) = states.last() else { break };
        let preview = haft.undo_preview(&UndoTarget::Last).unwrap();
        haft.undo(&preview, false, CallOptions::default()).await.unwrap();
        assert_eq!(&tree(fixture.folder.path()), earlier);
    }
    assert!(haft.undo_preview(&UndoTarget::Last).is_err(), "nothing is left to undo");
}
