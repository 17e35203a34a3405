//! Putting paths back: from every kind of thing to every other, and never over what somebody else made.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use haft_tool::{ErrorKind, FileNode, Files, Node, Restore};

use crate::common::{BYTES, SECRET, Stage, Told, kind, mode, observed, put_all_back, put_back, set_mode};

fn file(bytes: &[u8], mode: u32) -> Node {
    let hash = blake3::hash(bytes).to_hex().to_string();
    Node::File(FileNode {
        hash,
        size: bytes.len() as u64,
        mode,
        owner: None,
        xattrs: Vec::new(),
        linked: None,
    })
}

fn nodes() -> Vec<Node> {
    vec![
        Node::Absent,
        file(BYTES, 0o640),
        file(BYTES, 0o4755),
        Node::Dir { mode: 0o750 },
        Node::Dir { mode: 0o1777 },
        Node::Link { target: "elsewhere/none".into() },
        Node::Link { target: "/etc".into() },
    ]
}

/// Puts `node` at `path` without Haft.
fn set_up(path: &Path, node: &Node) {
    match node {
        Node::Absent | Node::Special => {}
        Node::File(file) => {
            fs::write(path, BYTES).unwrap();
            set_mode(path, file.mode);
        }
        Node::Dir { mode } => {
            fs::create_dir(path).unwrap();
            set_mode(path, *mode);
        }
        Node::Link { target } => symlink(target, path).unwrap(),
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
        Node::Dir { mode: bits } => {
            assert!(stat.unwrap().is_dir());
            assert_eq!(mode(path), *bits);
        }
        Node::Link { target } => assert_eq!(fs::read_link(path).unwrap(), *target),
        Node::Special => panic!("never set up"),
    }
}

#[test]
fn every_kind_of_thing_can_be_put_back_in_place_of_every_other() {
    for from in nodes() {
        for to in nodes() {
            let stage = Stage::new();
            let path = stage.ws("path");
            set_up(&path, &from);
            let (files, journal) = stage.recorded();
            assert!(observed(&files, &path).same_as(&from), "{from:?}");
            put_back(&files, &Restore { path: &path, expect: &from, to: &to }).unwrap();
            assert_is(&path, &to);
            assert!(stage.names("ws").len() <= 1, "{:?}", stage.names("ws"));
            let told = journal.told();
            let [Told::Before { change, bytes }, Told::Changed(changed)] = told.as_slice() else {
                panic!("{from:?} -> {to:?}: {told:?}")
            };
            assert_eq!(change, changed);
            assert!(change.before.same_as(&from) && change.after == to);
            assert_eq!(bytes.as_deref(), from.as_file().map(|_| BYTES));
        }
    }
}

#[test]
fn what_is_not_as_expected_is_a_conflict_and_stays_as_it_is() {
    let other = file(b"other bytes", 0o640);
    for now in nodes() {
        for expect in
            nodes().into_iter().chain([other.clone(), Node::Special]).filter(|expect| *expect != now)
        {
            for to in [
                Node::Absent,
                file(BYTES, 0o600),
                Node::Dir { mode: 0o700 },
                Node::Link { target: "x".into() },
            ] {
                let stage = Stage::new();
                let path = stage.ws("path");
                set_up(&path, &now);
                let (files, journal) = stage.recorded();
                let result = put_back(&files, &Restore { path: &path, expect: &expect, to: &to });
                assert_eq!(kind(result), Err(ErrorKind::Conflict), "{now:?}, expected {expect:?}");
                assert_is(&path, &now);
                assert!(stage.names("ws").len() <= 1);
                assert_eq!(journal.told(), []);
            }
        }
    }
}

#[test]
fn a_directory_with_entries_that_the_call_did_not_make_stays() {
    for to in [Node::Absent, file(BYTES, 0o600), Node::Link { target: "x".into() }] {
        let stage = Stage::new();
        let foreign = stage.put("ws/dir/foreign", "theirs");
        let dir = stage.ws("dir");
        let (files, journal) = stage.recorded();
        let expect = observed(&files, &dir);
        let error = put_back(&files, &Restore { path: &dir, expect: &expect, to: &to }).unwrap_err();
        assert_eq!((error.kind, error.message.contains("entries")), (ErrorKind::Conflict, true), "{error}");
        assert_eq!(
            (fs::read(foreign).unwrap(), stage.names("ws")),
            (b"theirs".to_vec(), vec!["dir".to_owned()])
        );
        assert_eq!(journal.told(), []);
    }
}

#[test]
fn entries_that_come_at_the_last_moment_are_not_lost_either() {
    for to in [Node::Absent, file(BYTES, 0o600), Node::Link { target: "x".into() }] {
        let stage = Stage::new();
        let dir = stage.ws("dir");
        fs::create_dir(&dir).unwrap();
        let late = dir.join("late");
        let (files, journal) = stage.hooked({
            let late = late.clone();
            move |_| {
                fs::write(&late, "theirs").unwrap();
                Ok(())
            }
        });
        let expect = observed(&files, &dir);
        let result = put_back(&files, &Restore { path: &dir, expect: &expect, to: &to });
        assert_eq!(kind(result), Err(ErrorKind::Conflict));
        assert_eq!(
            (fs::read(late).unwrap(), stage.names("ws")),
            (b"theirs".to_vec(), vec!["dir".to_owned()])
        );
        assert_eq!(journal.changes(), []);
    }
}

#[test]
fn a_change_at_the_last_moment_is_a_conflict_and_is_not_lost() {
    for from in nodes() {
        for to in
            nodes().into_iter().filter(|to| !matches!((&from, to), (_, Node::Absent) if from == Node::Absent))
        {
            if matches!((&from, &to), (Node::Dir { .. }, Node::Dir { .. })) {
                continue;
            }
            let stage = Stage::new();
            let path = stage.ws("path");
            set_up(&path, &from);
            let (files, journal) = stage.hooked({
                let (path, new) = (path.clone(), stage.path("new"));
                move |_| {
                    let _ = fs::remove_dir(&path);
                    fs::write(&new, "theirs").unwrap();
                    fs::rename(&new, &path).unwrap();
                    Ok(())
                }
            });
            let result = put_back(&files, &Restore { path: &path, expect: &from, to: &to });
            assert_eq!(kind(result), Err(ErrorKind::Conflict), "{from:?} -> {to:?}");
            assert_eq!(
                (fs::read(&path).unwrap(), stage.names("ws")),
                (b"theirs".to_vec(), vec!["path".to_owned()])
            );
            assert_eq!(journal.changes(), []);
        }
    }
}

#[test]
fn a_directory_swapped_for_a_link_at_the_last_moment_gives_no_mode_to_what_it_leads_to() {
    let stage = Stage::new();
    let dir = stage.ws("dir");
    fs::create_dir(&dir).unwrap();
    set_mode(&stage.path("out"), 0o700);
    let (files, _) = stage.hooked({
        let (dir, out) = (dir.clone(), stage.path("out"));
        move |_| {
            fs::remove_dir(&dir).unwrap();
            symlink(&out, &dir).unwrap();
            Ok(())
        }
    });
    let expect = observed(&files, &dir);
    let to = Node::Dir { mode: 0o777 };
    assert!(put_back(&files, &Restore { path: &dir, expect: &expect, to: &to }).is_err());
    assert_eq!(mode(&stage.path("out")), 0o700);
}

#[test]
fn if_the_journal_fails_nothing_is_put_back() {
    for from in nodes() {
        for to in nodes() {
            let stage = Stage::new();
            let path = stage.ws("path");
            set_up(&path, &from);
            let (files, _) = stage.hooked(|_| Err(haft_tool::ToolError::failed("the disk is full")));
            let result = put_back(&files, &Restore { path: &path, expect: &from, to: &to });
            assert_eq!(kind(result), Err(ErrorKind::ExecutionFailed));
            assert_is(&path, &from);
            assert!(stage.names("ws").len() <= 1);
        }
    }
}

#[test]
fn a_path_whose_directory_is_gone_is_a_conflict_unless_nothing_is_wanted_there() {
    let stage = Stage::new();
    let (files, path) = (stage.files(), stage.ws("gone/path"));
    let restore = |expect: &Node, to: &Node| kind(put_back(&files, &Restore { path: &path, expect, to }));
    let some = file(BYTES, 0o600);
    assert_eq!(restore(&Node::Absent, &Node::Absent), Ok(()));
    assert_eq!(restore(&some, &Node::Absent), Err(ErrorKind::Conflict));
    assert_eq!(restore(&Node::Absent, &some), Err(ErrorKind::Conflict));
    assert_eq!(stage.names("ws"), [] as [&str; 0]);
}

#[test]
fn a_special_file_is_never_made_and_never_taken_for_something_else() {
    let stage = Stage::new();
    let path = stage.ws("path");
    let restore = Restore { path: &path, expect: &Node::Absent, to: &Node::Special };
    let (files, journal) = stage.recorded();
    assert_eq!(kind(put_back(&files, &restore)), Err(ErrorKind::Conflict));
    assert_eq!((stage.names("ws").len(), journal.told()), (0, Vec::new()));
}

#[test]
fn what_is_put_back_goes_through_no_link_that_leads_out() {
    let stage = Stage::new();
    stage.link(stage.path("out"), "ws/link");
    let path = stage.ws("link/file");
    let expect = file(SECRET, mode(&stage.path("out/file")));
    for to in nodes() {
        let result = put_back(&stage.files(), &Restore { path: &path, expect: &expect, to: &to });
        assert_eq!(kind(result), Err(ErrorKind::InvalidPath));
    }
    stage.assert_outside_untouched();
}

#[test]
fn a_link_itself_is_put_back_and_not_what_it_points_to() {
    let stage = Stage::new();
    let target = stage.put("ws/target", "target");
    let link = stage.link("target", "ws/link");
    let files = stage.files();
    let expect = observed(&files, &link);
    put_back(&files, &Restore { path: &link, expect: &expect, to: &file(BYTES, 0o600) }).unwrap();
    assert_eq!((fs::read(&link).unwrap(), fs::read(&target).unwrap()), (BYTES.to_vec(), b"target".to_vec()));
    let expect = observed(&files, &link);
    put_back(&files, &Restore { path: &link, expect: &expect, to: &Node::Link { target: "target".into() } })
        .unwrap();
    assert_eq!(fs::read(&link).unwrap(), b"target");
}
