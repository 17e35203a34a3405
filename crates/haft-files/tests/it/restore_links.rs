//! Restoring hard links, and moving directories back.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use haft_tool::{Change, ErrorKind, Files, Node, RestorePlan, RestoreStep, ToolError};

use crate::fixture::{
    BYTES, Fixture, RecordEvent, Restore, kind, observed, restore_all, restore_one, set_mode,
};

#[test]
fn hard_linked_file_is_restored_in_place() {
    for read_only in [false, true] {
        let fixture = Fixture::new();
        let (a, b) = (fixture.ws("a"), fixture.ws("b"));
        fs::write(&a, BYTES).unwrap();
        fs::hard_link(&a, &b).unwrap();
        let (files, log) = fixture.recorded();
        let before = observed(&files, &a);
        fs::write(&a, "changed in place").unwrap();
        set_mode(&a, if read_only { 0o444 } else { 0o644 });
        let after = observed(&files, &a);
        // Both names were touched; restoring the first restores the second.
        let restores = [&a, &b].map(|path| Restore { path, expect: &after, to: &before });
        restore_all(&files, &restores).unwrap();
        assert_eq!((fs::read(&a).unwrap(), fs::read(&b).unwrap()), (BYTES.to_vec(), BYTES.to_vec()));
        for path in [&a, &b] {
            let now = observed(&files, path);
            assert!(now.fully_same_as(&before) && now.linked() == before.linked(), "still one file");
        }
        assert_eq!((log.changes().len(), fixture.names("ws")), (2, vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(fs::read_dir(fixture.ws("")).unwrap().count(), 2);
    }
}

#[test]
fn removed_names_are_linked_again() {
    let number = |path: &Path| fs::metadata(path).unwrap().ino();
    for (gone, changed) in [(1, false), (2, false), (3, false), (2, true)] {
        let fixture = Fixture::new();
        let names = ["a", "b", "deep/c"].map(|name| fixture.ws(name));
        fs::create_dir(fixture.ws("deep")).unwrap();
        fs::write(&names[0], BYTES).unwrap();
        names[1..].iter().for_each(|name| fs::hard_link(&names[0], name).unwrap());
        let (files, log) = fixture.recorded();
        let before = observed(&files, &names[0]);
        names[..gone].iter().for_each(|name| fs::remove_file(name).unwrap());
        if changed {
            fs::write(&names[2], "by another program").unwrap();
        }
        let restores = names[..gone].iter().map(|path| Restore { path, expect: &Node::Absent, to: &before });
        let restores: Vec<_> = restores.collect();
        restore_all(&files, &restores).unwrap();
        assert_eq!(log.changes().len(), gone);
        assert_eq!((fs::read(&names[0]).unwrap(), number(&names[0])), (BYTES.to_vec(), number(&names[1])));
        assert_eq!(number(&names[1]) == number(&names[2]), !changed, "{gone} gone");
        assert_eq!(
            (fixture.names("ws").len(), fixture.names("ws/deep").len()),
            (3, 1),
            "nothing is left over"
        );
    }
}

#[test]
fn replaced_name_is_linked_again() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.ws("a"), fixture.ws("b"));
    fs::write(&a, BYTES).unwrap();
    fs::hard_link(&a, &b).unwrap();
    let files = fixture.files();
    let before = observed(&files, &a);
    fs::remove_file(&a).unwrap();
    fs::write(&a, "a new one").unwrap();
    let after = observed(&files, &a);
    restore_one(&files, &Restore { path: &a, expect: &after, to: &before }).unwrap();
    assert_eq!((fs::read(&a).unwrap(), fs::read(&b).unwrap()), (BYTES.to_vec(), BYTES.to_vec()));
    assert!(observed(&files, &a) == before, "one file again");
}

fn move_directory(files: &dyn Files, from: &Path, to: &Path) -> Result<(), ToolError> {
    let node = files.observe(from).unwrap_or(Node::Absent);
    let change = Change { moved_to: Some(to.to_owned()), ..Change::new(from, node, Node::Absent) };
    let (from, to) = (from.to_owned(), to.to_owned());
    let steps = vec![RestoreStep::MoveOut { from: from.clone() }, RestoreStep::MoveIn { from, to }];
    files.restore(&RestorePlan { steps, changes: vec![change] }, &|_| Ok(Box::new(BYTES)))
}

#[test]
fn directory_is_moved_back_and_recorded() {
    let fixture = Fixture::new();
    fixture.put("ws/new/place/inside/file", "x");
    fs::create_dir(fixture.ws("old")).unwrap();
    let (from, to) = (fixture.ws("new/place"), fixture.ws("old/home"));
    let (files, log) = fixture.recorded();
    move_directory(&files, &from, &to).unwrap();
    assert_eq!(fs::read(fixture.ws("old/home/inside/file")).unwrap(), b"x");
    assert!(!from.exists());
    let events = log.events();
    let [RecordEvent::Intended { change, bytes: None }, RecordEvent::Changed(changed)] = events.as_slice()
    else {
        panic!("{events:?}")
    };
    assert_eq!(change, changed);
    assert_eq!((&change.path, change.moved_to.as_ref()), (&from, Some(&to)));
    assert_eq!(fixture.names("ws"), ["new", "old"], "nothing is left over");
}

#[test]
fn directory_is_not_moved_over_anything_or_outside() {
    let fixture = Fixture::new();
    fixture.put("ws/here/file", "x");
    fixture.put("ws/taken", "theirs");
    fs::create_dir(fixture.ws("empty")).unwrap();
    let (files, log) = fixture.recorded();
    let here = fixture.ws("here");
    for to in ["taken", "empty", "gone/x"] {
        assert_eq!(kind(move_directory(&files, &here, &fixture.ws(to))), Err(ErrorKind::Conflict), "{to}");
    }
    for from in ["taken", "nothing", "gone/x"] {
        let moved = move_directory(&files, &fixture.ws(from), &fixture.ws("free"));
        assert_eq!(kind(moved), Err(ErrorKind::Conflict), "{from}");
    }
    assert_eq!(kind(move_directory(&files, &here, &fixture.path("out/x"))), Err(ErrorKind::InvalidPath));
    let moved = move_directory(&files, &fixture.path("out"), &fixture.ws("x"));
    assert_eq!(kind(moved), Err(ErrorKind::InvalidPath));
    fixture.link(fixture.path("out"), "ws/link");
    assert_eq!(kind(move_directory(&files, &here, &fixture.ws("link/x"))), Err(ErrorKind::InvalidPath));
    assert_eq!((log.changes(), here.join("file").exists()), (Vec::new(), true));
    assert_eq!(fixture.names("ws"), ["empty", "here", "link", "taken"]);
    fixture.assert_outside_untouched();
}
