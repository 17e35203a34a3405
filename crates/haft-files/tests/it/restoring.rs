//! Putting paths back: from every kind of thing to every other, and never over what somebody else made.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
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

/// A tree of directories, files and links, from the top down.
fn grove(stage: &Stage) -> Vec<(std::path::PathBuf, Node)> {
    let mut grove = Vec::new();
    for dir in 0..20 {
        let top = stage.ws(&format!("d{dir}"));
        let deep = top.join("deep");
        grove.push((top.clone(), Node::Dir { mode: 0o755 }));
        grove.push((deep.clone(), Node::Dir { mode: 0o700 }));
        for n in 0..60 {
            grove.push((deep.join(format!("f{n}")), file(BYTES, 0o600 + n % 2)));
        }
        grove.push((top.join("link"), Node::Link { target: "deep".into() }));
    }
    grove
}

#[test]
fn many_paths_go_and_come_back_in_few_waits_for_the_journal() {
    let stage = Stage::new();
    let grove = grove(&stage);
    let waits = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (files, journal) = stage.hooked({
        let waits = std::sync::Arc::clone(&waits);
        move |_| {
            waits.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Ok(())
        }
    });
    let made: Vec<_> =
        grove.iter().map(|(path, node)| Restore { path, expect: &Node::Absent, to: node }).collect();
    // Directories first, as a plan has it.
    let (dirs, others): (Vec<_>, Vec<_>) =
        made.into_iter().partition(|made| matches!(made.to, Node::Dir { .. }));
    put_all_back(&files, &[dirs, others].concat()).unwrap();
    for (path, node) in &grove {
        assert_is(path, node);
    }
    let gone: Vec<_> =
        grove.iter().rev().map(|(path, node)| Restore { path, expect: node, to: &Node::Absent }).collect();
    put_all_back(&files, &gone).unwrap();
    assert_eq!(stage.names("ws"), [] as [&str; 0]);
    assert_eq!(journal.changes().len(), 2 * grove.len());
    let waits = waits.load(std::sync::atomic::Ordering::SeqCst);
    assert!(waits < grove.len() / 100, "{waits} waits for {} paths", 2 * grove.len());
}

#[test]
fn when_one_of_many_fails_nothing_prepared_is_left_behind() {
    let stage = Stage::new();
    let (a, b, c) = (stage.ws("a"), stage.ws("b"), stage.ws("c"));
    let (files, journal) = stage.hooked({
        let b = b.clone();
        move |_| {
            fs::write(&b, "theirs").unwrap();
            Ok(())
        }
    });
    let to = file(BYTES, 0o600);
    let restores = [&a, &b, &c].map(|path| Restore { path, expect: &Node::Absent, to: &to });
    assert_eq!(kind(put_all_back(&files, &restores)), Err(ErrorKind::Conflict));
    assert_eq!(stage.names("ws"), ["a", "b"]);
    assert_eq!(fs::read(&b).unwrap(), b"theirs");
    assert_eq!(journal.changes().len(), 1, "what was put back is told, the rest is not");
}

#[test]
fn a_file_with_several_names_gets_its_bytes_back_under_all_of_them() {
    for read_only in [false, true] {
        let stage = Stage::new();
        let (a, b) = (stage.ws("a"), stage.ws("b"));
        fs::write(&a, BYTES).unwrap();
        fs::hard_link(&a, &b).unwrap();
        let (files, journal) = stage.recorded();
        let before = observed(&files, &a);
        fs::write(&a, "changed in place").unwrap();
        set_mode(&a, if read_only { 0o444 } else { 0o644 });
        let after = observed(&files, &a);
        // The command touched both names; putting back the first brings back the second.
        let restores = [&a, &b].map(|path| Restore { path, expect: &after, to: &before });
        put_all_back(&files, &restores).unwrap();
        assert_eq!((fs::read(&a).unwrap(), fs::read(&b).unwrap()), (BYTES.to_vec(), BYTES.to_vec()));
        assert!(observed(&files, &b) == before && observed(&files, &a) == before, "still one file");
        assert_eq!((journal.changes().len(), stage.names("ws")), (1, vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(fs::read_dir(stage.ws("")).unwrap().count(), 2);
    }
}

#[test]
fn names_of_one_file_come_back_as_such_unless_it_has_changed_since() {
    let number = |path: &Path| fs::metadata(path).unwrap().ino();
    for (gone, changed) in [(1, false), (2, false), (3, false), (2, true)] {
        let stage = Stage::new();
        let names = ["a", "b", "deep/c"].map(|name| stage.ws(name));
        fs::create_dir(stage.ws("deep")).unwrap();
        fs::write(&names[0], BYTES).unwrap();
        names[1..].iter().for_each(|name| fs::hard_link(&names[0], name).unwrap());
        let (files, journal) = stage.recorded();
        let before = observed(&files, &names[0]);
        names[..gone].iter().for_each(|name| fs::remove_file(name).unwrap());
        if changed {
            fs::write(&names[2], "by somebody else").unwrap();
        }
        let restores = names[..gone].iter().map(|path| Restore { path, expect: &Node::Absent, to: &before });
        let restores: Vec<_> = restores.collect();
        put_all_back(&files, &restores).unwrap();
        assert_eq!(journal.changes().len(), gone);
        assert_eq!((fs::read(&names[0]).unwrap(), number(&names[0])), (BYTES.to_vec(), number(&names[1])));
        assert_eq!(number(&names[1]) == number(&names[2]), !changed, "{gone} gone");
        assert_eq!((stage.names("ws").len(), stage.names("ws/deep").len()), (3, 1), "nothing is left over");
    }
}

#[test]
fn a_file_in_the_place_of_a_name_of_another_is_replaced() {
    let stage = Stage::new();
    let (a, b) = (stage.ws("a"), stage.ws("b"));
    fs::write(&a, BYTES).unwrap();
    fs::hard_link(&a, &b).unwrap();
    let files = stage.files();
    let before = observed(&files, &a);
    fs::remove_file(&a).unwrap();
    fs::write(&a, "a new one").unwrap();
    let after = observed(&files, &a);
    put_back(&files, &Restore { path: &a, expect: &after, to: &before }).unwrap();
    assert_eq!((fs::read(&a).unwrap(), fs::read(&b).unwrap()), (BYTES.to_vec(), BYTES.to_vec()));
    assert!(observed(&files, &a) == before, "one file again");
}

#[test]
fn a_special_file_that_a_command_made_can_go() {
    let stage = Stage::new();
    let fifo = stage.ws("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let files = stage.files();
    assert_eq!(observed(&files, &fifo), Node::Special);
    put_back(&files, &Restore { path: &fifo, expect: &Node::Special, to: &Node::Absent }).unwrap();
    assert_eq!(stage.names("ws"), [] as [&str; 0]);
}

#[test]
fn a_large_file_is_put_back_and_its_image_is_not_held() {
    let stage = Stage::new();
    let path = stage.put("ws/large", vec![7; 3 << 20]);
    let (files, journal) = stage.recorded();
    let now = observed(&files, &path);
    put_back(&files, &Restore { path: &path, expect: &now, to: &file(BYTES, 0o600) }).unwrap();
    assert_eq!(fs::read(&path).unwrap(), BYTES);
    let told = journal.told();
    assert!(matches!(&told[0], Told::Before { bytes: Some(bytes), .. } if *bytes == vec![7; 3 << 20]));
}

#[test]
fn restored_zeros_are_holes_and_damaged_content_is_refused() {
    let stage = Stage::new();
    let path = stage.ws("sparse");
    let mut content = vec![0; 3 << 20];
    content[1 << 20] = 7;
    content.extend_from_slice(b"end");
    let to = file(&content, 0o600);
    let restore = [Restore { path: &path, expect: &Node::Absent, to: &to }];
    let files = stage.files();
    let damaged = files.restore(&restore, &|_| Ok(Box::new(BYTES)));
    assert_eq!((kind(damaged), stage.names("ws").len()), (Err(ErrorKind::ExecutionFailed), 0));
    let open = |_: &FileNode| -> Result<Box<dyn std::io::Read + Send>, _> {
        Ok(Box::new(std::io::Cursor::new(content.clone())))
    };
    files.restore(&restore, &open).unwrap();
    assert!(fs::read(&path).unwrap() == content);
    assert!(fs::metadata(&path).unwrap().blocks() * 512 < 1 << 20);
}

#[test]
fn a_directory_is_moved_back_with_everything_in_it_and_recorded() {
    let stage = Stage::new();
    stage.put("ws/new/place/inside/file", "x");
    fs::create_dir(stage.ws("old")).unwrap();
    let (from, to) = (stage.ws("new/place"), stage.ws("old/home"));
    let (files, journal) = stage.recorded();
    files.restore_move(&from, &to).unwrap();
    assert_eq!(fs::read(stage.ws("old/home/inside/file")).unwrap(), b"x");
    assert!(!from.exists());
    let told = journal.told();
    let [Told::Before { change, bytes: None }, Told::Changed(changed)] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!(change, changed);
    assert_eq!((&change.path, change.moved_to.as_ref()), (&from, Some(&to)));
}

#[test]
fn a_directory_is_not_moved_back_over_anything_nor_out_of_the_roots() {
    let stage = Stage::new();
    stage.put("ws/here/file", "x");
    stage.put("ws/taken", "theirs");
    fs::create_dir(stage.ws("empty")).unwrap();
    let (files, journal) = stage.recorded();
    let here = stage.ws("here");
    for to in ["taken", "empty", "gone/x"] {
        assert_eq!(kind(files.restore_move(&here, &stage.ws(to))), Err(ErrorKind::Conflict), "{to}");
    }
    for from in ["taken", "nothing", "gone/x"] {
        assert_eq!(
            kind(files.restore_move(&stage.ws(from), &stage.ws("free"))),
            Err(ErrorKind::Conflict),
            "{from}"
        );
    }
    assert_eq!(kind(files.restore_move(&here, &stage.path("out/x"))), Err(ErrorKind::InvalidPath));
    assert_eq!(kind(files.restore_move(&stage.path("out"), &stage.ws("x"))), Err(ErrorKind::InvalidPath));
    stage.link(stage.path("out"), "ws/link");
    assert_eq!(kind(files.restore_move(&here, &stage.ws("link/x"))), Err(ErrorKind::InvalidPath));
    assert_eq!((journal.changes(), here.join("file").exists()), (Vec::new(), true));
    stage.assert_outside_untouched();
}
