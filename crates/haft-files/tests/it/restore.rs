//! Restores paths from every kind of node to every other, never over foreign changes.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use haft_tool::{DirNode, ErrorKind, FileNode, Files, Node};

use crate::fixture::{
    BYTES, Fixture, RecordEvent, Restore, SECRET, kind, mode, observed, plan_of, restore_all, restore_one,
    set_mode,
};

fn file(bytes: &[u8], mode: u32) -> Node {
    let hash = blake3::hash(bytes).to_hex().to_string();
    Node::File(FileNode {
        hash,
        size: bytes.len() as u64,
        mode,
        owner: None,
        xattrs: Vec::new(),
        linked: None,
        modified: None,
    })
}

fn nodes() -> Vec<Node> {
    vec![
        Node::Absent,
        file(BYTES, 0o640),
        file(BYTES, 0o4755),
        Node::directory(0o750),
        Node::directory(0o1777),
        Node::link("elsewhere/none"),
        Node::link("/etc"),
    ]
}

/// Creates `node` at `path` without Haft.
fn set_up(path: &Path, node: &Node) {
    match node {
        Node::Absent | Node::Fifo { .. } | Node::Special => {}
        Node::File(file) => {
            fs::write(path, BYTES).unwrap();
            set_mode(path, file.mode);
        }
        Node::Dir(DirNode { mode, .. }) => {
            fs::create_dir(path).unwrap();
            set_mode(path, *mode);
        }
        Node::Link { target, .. } => symlink(target, path).unwrap(),
    }
}

fn assert_is(path: &Path, node: &Node) {
    let stat = fs::symlink_metadata(path);
    match node {
        Node::Absent => assert!(stat.is_err(), "something is there"),
        Node::File(file) => {
            assert!(stat.unwrap().is_file());
            assert_eq!((fs::read(path).unwrap(), mode(path)), (BYTES.to_vec(), file.mode));
        }
        Node::Dir(DirNode { mode: bits, .. }) => {
            assert!(stat.unwrap().is_dir());
            assert_eq!(mode(path), *bits);
        }
        Node::Link { target, .. } => assert_eq!(fs::read_link(path).unwrap(), *target),
        Node::Fifo { .. } | Node::Special => panic!("never set up"),
    }
}

#[test]
fn every_node_is_restored_over_every_other() {
    for from in nodes() {
        for to in nodes() {
            let fixture = Fixture::new();
            let path = fixture.ws("path");
            set_up(&path, &from);
            let (files, log) = fixture.recorded();
            assert!(observed(&files, &path).same_as(&from), "{from:?}");
            restore_one(&files, &Restore { path: &path, expect: &from, to: &to }).unwrap();
            assert_is(&path, &to);
            assert!(fixture.names("ws").len() <= 1, "{:?}", fixture.names("ws"));
            if (&from, &to) == (&Node::Absent, &Node::Absent) {
                assert_eq!(log.events(), [], "there is nothing to do");
                continue;
            }
            let events = log.events();
            let [RecordEvent::Intended { change, bytes }, RecordEvent::Changed(changed)] = events.as_slice()
            else {
                panic!("{from:?} -> {to:?}: {events:?}")
            };
            assert_eq!(change, changed);
            assert!(change.before.same_as(&from) && change.after == to);
            assert_eq!(bytes.as_deref(), from.as_file().map(|_| BYTES));
        }
    }
}

#[test]
fn unexpected_state_is_a_conflict() {
    let other = file(b"other bytes", 0o640);
    for now in nodes() {
        for expect in
            nodes().into_iter().chain([other.clone(), Node::Special]).filter(|expect| *expect != now)
        {
            for to in [Node::Absent, file(BYTES, 0o600), Node::directory(0o700), Node::link("x")] {
                let fixture = Fixture::new();
                let path = fixture.ws("path");
                set_up(&path, &now);
                let (files, log) = fixture.recorded();
                let result = restore_one(&files, &Restore { path: &path, expect: &expect, to: &to });
                assert_eq!(kind(result), Err(ErrorKind::Conflict), "{now:?}, expected {expect:?}");
                assert_is(&path, &now);
                assert!(fixture.names("ws").len() <= 1);
                assert_eq!(log.events(), []);
            }
        }
    }
}

#[test]
fn directory_with_foreign_entries_is_a_conflict() {
    for to in [Node::Absent, file(BYTES, 0o600), Node::link("x")] {
        let fixture = Fixture::new();
        let foreign = fixture.put("ws/dir/foreign", "theirs");
        let dir = fixture.ws("dir");
        let (files, log) = fixture.recorded();
        let expect = observed(&files, &dir);
        let error = restore_one(&files, &Restore { path: &dir, expect: &expect, to: &to }).unwrap_err();
        assert_eq!((error.kind, error.message.contains("entries")), (ErrorKind::Conflict, true), "{error}");
        assert_eq!(
            (fs::read(foreign).unwrap(), fixture.names("ws")),
            (b"theirs".to_vec(), vec!["dir".to_owned()])
        );
        assert_eq!(log.changes(), []);
    }
}

#[test]
fn late_entries_of_a_directory_are_kept() {
    for to in [Node::Absent, file(BYTES, 0o600), Node::link("x")] {
        let fixture = Fixture::new();
        let dir = fixture.ws("dir");
        fs::create_dir(&dir).unwrap();
        let late = dir.join("late");
        let (files, log) = fixture.hooked({
            let late = late.clone();
            move |_| {
                fs::write(&late, "theirs").unwrap();
                Ok(())
            }
        });
        let expect = observed(&files, &dir);
        let result = restore_one(&files, &Restore { path: &dir, expect: &expect, to: &to });
        assert_eq!(kind(result), Err(ErrorKind::Conflict));
        assert_eq!(
            (fs::read(late).unwrap(), fixture.names("ws")),
            (b"theirs".to_vec(), vec!["dir".to_owned()])
        );
        assert_eq!(log.changes(), []);
    }
}

#[test]
fn late_change_is_a_conflict() {
    for from in nodes() {
        for to in
            nodes().into_iter().filter(|to| !matches!((&from, to), (_, Node::Absent) if from == Node::Absent))
        {
            if matches!((&from, &to), (Node::Dir { .. }, Node::Dir { .. })) {
                continue;
            }
            let fixture = Fixture::new();
            let path = fixture.ws("path");
            set_up(&path, &from);
            let (files, log) = fixture.hooked({
                let (path, new) = (path.clone(), fixture.path("new"));
                move |_| {
                    let _ = fs::remove_dir(&path);
                    fs::write(&new, "theirs").unwrap();
                    fs::rename(&new, &path).unwrap();
                    Ok(())
                }
            });
            let result = restore_one(&files, &Restore { path: &path, expect: &from, to: &to });
            assert_eq!(kind(result), Err(ErrorKind::Conflict), "{from:?} -> {to:?}");
            assert_eq!(
                (fs::read(&path).unwrap(), fixture.names("ws")),
                (b"theirs".to_vec(), vec!["path".to_owned()])
            );
            assert_eq!(log.changes(), []);
        }
    }
}

#[test]
fn late_link_does_not_redirect_chmod() {
    let fixture = Fixture::new();
    let dir = fixture.ws("dir");
    fs::create_dir(&dir).unwrap();
    set_mode(&fixture.path("out"), 0o700);
    let (files, _) = fixture.hooked({
        let (dir, out) = (dir.clone(), fixture.path("out"));
        move |_| {
            fs::remove_dir(&dir).unwrap();
            symlink(&out, &dir).unwrap();
            Ok(())
        }
    });
    let expect = observed(&files, &dir);
    let to = Node::directory(0o777);
    // The link comes after the directory's mode was set; setting that back must not follow it either.
    let _ = restore_one(&files, &Restore { path: &dir, expect: &expect, to: &to });
    assert_eq!(mode(&fixture.path("out")), 0o700);
}

#[test]
fn failed_record_restores_nothing() {
    for from in nodes() {
        for to in nodes().into_iter().filter(|to| *to != Node::Absent || from != Node::Absent) {
            let fixture = Fixture::new();
            let path = fixture.ws("path");
            set_up(&path, &from);
            let (files, _) = fixture.hooked(|_| Err(haft_tool::ToolError::failed("the disk is full")));
            let result = restore_one(&files, &Restore { path: &path, expect: &from, to: &to });
            assert_eq!(kind(result), Err(ErrorKind::ExecutionFailed));
            assert_is(&path, &from);
            assert!(fixture.names("ws").len() <= 1);
        }
    }
}

#[test]
fn missing_directory_is_a_conflict() {
    let fixture = Fixture::new();
    let (files, path) = (fixture.files(), fixture.ws("gone/path"));
    let restore = |expect: &Node, to: &Node| kind(restore_one(&files, &Restore { path: &path, expect, to }));
    let some = file(BYTES, 0o600);
    assert_eq!(restore(&Node::Absent, &Node::Absent), Ok(()));
    assert_eq!(restore(&some, &Node::Absent), Err(ErrorKind::Conflict));
    assert_eq!(restore(&Node::Absent, &some), Err(ErrorKind::Conflict));
    assert_eq!(fixture.names("ws"), [] as [&str; 0]);
}

#[test]
fn special_file_is_not_recreated() {
    let fixture = Fixture::new();
    let path = fixture.ws("path");
    let restore = Restore { path: &path, expect: &Node::Absent, to: &Node::Special };
    let (files, log) = fixture.recorded();
    assert_eq!(kind(restore_one(&files, &restore)), Err(ErrorKind::Conflict));
    assert_eq!((fixture.names("ws").len(), log.events()), (0, Vec::new()));
}

#[test]
fn secret_is_restored_although_it_may_not_be_read() {
    let fixture = Fixture::new();
    let (path, to) = (fixture.ws(".env"), file(BYTES, 0o600));
    restore_one(&fixture.files(), &Restore { path: &path, expect: &Node::Absent, to: &to }).unwrap();
    assert_is(&path, &to);
    assert_eq!(fixture.files().open(&path).unwrap_err().kind, ErrorKind::PermissionDenied);
    let edited = fixture.files().update(&path, &mut |_| Ok(Vec::new()));
    assert_eq!(edited.unwrap_err().kind, ErrorKind::PermissionDenied);
    assert_is(&path, &to);
}

#[test]
fn restore_does_not_follow_links_outside() {
    let fixture = Fixture::new();
    fixture.link(fixture.path("out"), "ws/link");
    let path = fixture.ws("link/file");
    let expect = file(SECRET, mode(&fixture.path("out/file")));
    for to in nodes() {
        let result = restore_one(&fixture.files(), &Restore { path: &path, expect: &expect, to: &to });
        assert_eq!(kind(result), Err(ErrorKind::InvalidPath));
    }
    fixture.assert_outside_untouched();
}

#[test]
fn link_is_restored_as_a_link() {
    let fixture = Fixture::new();
    let target = fixture.put("ws/target", "target");
    let link = fixture.link("target", "ws/link");
    let files = fixture.files();
    let expect = observed(&files, &link);
    restore_one(&files, &Restore { path: &link, expect: &expect, to: &file(BYTES, 0o600) }).unwrap();
    assert_eq!((fs::read(&link).unwrap(), fs::read(&target).unwrap()), (BYTES.to_vec(), b"target".to_vec()));
    let expect = observed(&files, &link);
    restore_one(&files, &Restore { path: &link, expect: &expect, to: &Node::link("target") }).unwrap();
    assert_eq!(fs::read(&link).unwrap(), b"target");
}

/// A tree of directories, files and links, from the top down.
fn create_tree(fixture: &Fixture) -> Vec<(std::path::PathBuf, Node)> {
    let mut create_tree = Vec::new();
    for dir in 0..20 {
        let top = fixture.ws(&format!("d{dir}"));
        let deep = top.join("deep");
        create_tree.push((top.clone(), Node::directory(0o755)));
        create_tree.push((deep.clone(), Node::directory(0o700)));
        for n in 0..60 {
            create_tree.push((deep.join(format!("f{n}")), file(BYTES, 0o600 + n % 2)));
        }
        create_tree.push((top.join("link"), Node::link("deep")));
    }
    create_tree
}

#[test]
fn many_paths_are_recorded_in_few_batches() {
    let fixture = Fixture::new();
    let create_tree = create_tree(&fixture);
    let waits = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (files, log) = fixture.hooked({
        let waits = std::sync::Arc::clone(&waits);
        move |_| {
            waits.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Ok(())
        }
    });
    let made: Vec<_> =
        create_tree.iter().map(|(path, node)| Restore { path, expect: &Node::Absent, to: node }).collect();
    // Directories first, as in an undo plan.
    let (dirs, others): (Vec<_>, Vec<_>) =
        made.into_iter().partition(|made| matches!(made.to, Node::Dir { .. }));
    restore_all(&files, &[dirs, others].concat()).unwrap();
    for (path, node) in &create_tree {
        assert_is(path, node);
    }
    let gone: Vec<_> = create_tree
        .iter()
        .rev()
        .map(|(path, node)| Restore { path, expect: node, to: &Node::Absent })
        .collect();
    restore_all(&files, &gone).unwrap();
    assert_eq!(fixture.names("ws"), [] as [&str; 0]);
    assert_eq!(log.changes().len(), 2 * create_tree.len());
    let waits = waits.load(std::sync::atomic::Ordering::SeqCst);
    assert!(waits < create_tree.len() / 100, "{waits} waits for {} paths", 2 * create_tree.len());
}

#[test]
fn failed_restore_is_undone() {
    let fixture = Fixture::new();
    let (a, b, c) = (fixture.ws("a"), fixture.ws("b"), fixture.ws("c"));
    let (files, log) = fixture.hooked({
        let b = b.clone();
        move |_| {
            fs::write(&b, "theirs").unwrap();
            Ok(())
        }
    });
    let to = file(BYTES, 0o600);
    let restores = [&a, &b, &c].map(|path| Restore { path, expect: &Node::Absent, to: &to });
    assert_eq!(kind(restore_all(&files, &restores)), Err(ErrorKind::Conflict));
    assert_eq!(fixture.names("ws"), ["b"], "all or nothing");
    assert_eq!(fs::read(&b).unwrap(), b"theirs");
    assert_eq!(log.changes(), []);
}

#[test]
fn special_file_is_removed() {
    let fixture = Fixture::new();
    let fifo = fixture.ws("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let files = fixture.files();
    let expect = observed(&files, &fifo);
    restore_one(&files, &Restore { path: &fifo, expect: &expect, to: &Node::Absent }).unwrap();
    assert_eq!(fixture.names("ws"), [] as [&str; 0]);
}

#[test]
fn large_file_is_restored() {
    let fixture = Fixture::new();
    let path = fixture.put("ws/large", vec![7; 3 << 20]);
    let (files, log) = fixture.recorded();
    let now = observed(&files, &path);
    restore_one(&files, &Restore { path: &path, expect: &now, to: &file(BYTES, 0o600) }).unwrap();
    assert_eq!(fs::read(&path).unwrap(), BYTES);
    let events = log.events();
    assert!(
        matches!(&events[0], RecordEvent::Intended { bytes: Some(bytes), .. } if *bytes == vec![7; 3 << 20])
    );
}

#[test]
fn restored_zeros_are_holes_and_damaged_content_is_refused() {
    let fixture = Fixture::new();
    let path = fixture.ws("sparse");
    let mut content = vec![0; 3 << 20];
    content[1 << 20] = 7;
    content.extend_from_slice(b"end");
    let to = file(&content, 0o600);
    let restore = [Restore { path: &path, expect: &Node::Absent, to: &to }];
    let files = fixture.files();
    let damaged = files.restore(&plan_of(&restore), &|_| Ok(Box::new(BYTES)));
    assert_eq!((kind(damaged), fixture.names("ws").len()), (Err(ErrorKind::ExecutionFailed), 0));
    let open = |_: &FileNode| -> Result<Box<dyn std::io::Read + Send>, _> {
        Ok(Box::new(std::io::Cursor::new(content.clone())))
    };
    files.restore(&plan_of(&restore), &open).unwrap();
    assert!(fs::read(&path).unwrap() == content);
    assert!(fs::metadata(&path).unwrap().blocks() * 512 < 1 << 20);
}
