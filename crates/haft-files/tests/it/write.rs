//! What a write changes, keeps and records.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use haft_tool::FileContent;
use haft_tool::{Change, ErrorKind, FileNode, Files, Node, ToolError};
use rustix::fs::{Gid, Uid, XattrFlags};

use crate::fixture::{Fixture, RecordEvent, is_root, kind, mode, observed, read, set_mode, write};

/// Runs `work` as a user that is not root and owns nothing, if this is root; then also root's rights are tested.
fn as_unprivileged_user<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if is_root() {
                let (user, group) = (Uid::from_raw(65_534), Gid::from_raw(65_534));
                // Linux keeps these for each thread, so only this one loses its rights.
                rustix::thread::set_thread_groups(&[]).unwrap();
                rustix::thread::set_thread_res_gid(group, group, group).unwrap();
                rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            }
            work()
        });
        thread.join().unwrap()
    })
}

fn paths_of(events: &[RecordEvent]) -> Vec<&Path> {
    events
        .iter()
        .filter_map(|events| match events {
            RecordEvent::Intended { change, .. } | RecordEvent::Changed(change) => {
                Some(change.path.as_path())
            }
            RecordEvent::NotReversible(_) => None,
        })
        .collect()
}

#[test]
fn write_keeps_mode() {
    let fixture = Fixture::new();
    for bits in [0o644, 0o755, 0o600, 0o777, 0o666, 0o400 | 0o200, 0o4755, 0o2755, 0o1644, 0o7777] {
        let file = fixture.put("ws/file", "old");
        set_mode(&file, bits);
        let written = write(&fixture.files(), &file, b"new").unwrap();
        assert_eq!((mode(&file), written.after.mode), (bits, bits), "{bits:o}");
        assert_eq!(Node::File(written.after), observed(&fixture.files(), &file));
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn new_files_and_directories_follow_the_umask() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.ws("plain")).unwrap();
    fs::write(fixture.ws("plain/file"), "").unwrap();
    write(&fixture.files(), &fixture.ws("new/file"), b"1").unwrap();
    assert_eq!(mode(&fixture.ws("new")), mode(&fixture.ws("plain")));
    assert_eq!(mode(&fixture.ws("new/file")), mode(&fixture.ws("plain/file")));
}

#[test]
fn write_keeps_xattrs() {
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", "old");
    let set = |name: &str, value: &[u8]| rustix::fs::setxattr(&file, name, value, XattrFlags::empty());
    if set("user.note", b"kept \xff\0").is_err() {
        let known = rustix::fs::setxattr(&file, "user.x", b"1", XattrFlags::empty());
        assert_eq!(known, Err(rustix::io::Errno::NOTSUP), "this file system has no attributes to keep");
        return;
    }
    // As many as fit: where the file system has room for them, their names are longer than a page.
    let more =
        (0..40).take_while(|number| set(&format!("user.{number}.{}", "n".repeat(200)), b"v").is_ok()).count();
    let written = write(&fixture.files(), &file, b"new").unwrap();
    let mut value = [0; 64];
    let used = rustix::fs::getxattr(&file, "user.note", &mut value).unwrap();
    assert_eq!(&value[..used], b"kept \xff\0");
    assert_eq!(written.after.xattrs.iter().filter(|(name, _)| name.starts_with("user.")).count(), more + 1);
    assert_eq!(Node::File(written.after), observed(&fixture.files(), &file));
}

#[test]
fn default_acl_does_not_widen_an_old_file() {
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", "old");
    set_mode(&file, 0o640);
    // Version 2; then tag, rights, id: the owner, user 12345, the group, the mask, the others.
    let entries: [(u16, u16, u32); 5] = [(1, 7, !0), (2, 7, 12_345), (4, 5, !0), (16, 7, !0), (32, 5, !0)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let name = "system.posix_acl_default";
    if let Err(error) = rustix::fs::setxattr(fixture.ws(""), name, &list, XattrFlags::empty()) {
        assert_eq!(error, rustix::io::Errno::NOTSUP, "this file system has no access lists");
        return;
    }
    write(&fixture.files(), &file, b"new").unwrap();
    let mut value = [0; 256];
    assert!(
        rustix::fs::getxattr(&file, "system.posix_acl_access", &mut value).is_err(),
        "user 12345 was let in"
    );
    assert_eq!(mode(&file), 0o640);
}

#[test]
fn root_write_keeps_owner() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", "old");
    chown(&file, Some(1234), Some(2345)).unwrap();
    set_mode(&file, 0o6755);
    let (files, log) = fixture.recorded();
    let written = write(&files, &file, b"new").unwrap();
    let stat = fs::metadata(&file).unwrap();
    assert_eq!((stat.uid(), stat.gid(), mode(&file)), (1234, 2345, 0o6755));
    assert_eq!(written.after.owner, Some((1234, 2345)));
    assert!(!log.events().iter().any(|events| matches!(events, RecordEvent::NotReversible(_))));
}

#[test]
fn write_keeps_group_in_a_setgid_directory() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", "old");
    chown(fixture.ws(""), None, Some(2345)).unwrap();
    set_mode(&fixture.ws(""), 0o2775);
    let group = fs::metadata(&file).unwrap().gid();
    let written = write(&fixture.files(), &file, b"new").unwrap();
    assert_eq!(fs::metadata(&file).unwrap().gid(), group);
    assert_eq!(written.after.owner, None);
    let new = write(&fixture.files(), &fixture.ws("new"), b"new").unwrap();
    assert_eq!(
        new.after.owner,
        Some((0, 2345)),
        "a new file gets the directory's group, and that is reported"
    );
}

#[test]
fn lost_owner_is_reported_and_setuid_dropped() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", "old");
    set_mode(&file, 0o4777);
    set_mode(&fixture.ws(""), 0o777);
    set_mode(&fixture.base, 0o755);
    let (files, log) = fixture.recorded();
    let written = as_unprivileged_user(|| write(&files, &file, b"new")).unwrap();
    let stat = fs::metadata(&file).unwrap();
    assert_eq!((stat.uid(), mode(&file)), (65_534, 0o777));
    assert_eq!((written.after.owner, written.after.mode), (None, 0o777));
    let events = log.events();
    assert!(
        matches!(events.last(), Some(RecordEvent::NotReversible(why)) if why.contains("user 0")),
        "{events:?}"
    );
}

#[test]
fn read_only_file_is_refused() {
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", "old");
    set_mode(&file, 0o444);
    set_mode(&fixture.ws(""), 0o777);
    set_mode(&fixture.base, 0o755);
    let (files, log) = fixture.recorded();
    let error = as_unprivileged_user(|| write(&files, &file, b"new")).unwrap_err();
    assert_eq!(
        (error.kind, error.message.contains("read-only")),
        (ErrorKind::PermissionDenied, true),
        "{error}"
    );
    assert_eq!(log.events(), []);
    assert_eq!((fs::read(&file).unwrap(), fixture.names("ws")), (b"old".to_vec(), vec!["file".to_owned()]));
}

#[test]
fn intent_is_recorded_before_the_change() {
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", "old");
    let seen = file.clone();
    let (files, log) = fixture.hooked(move |intents| {
        assert_eq!(fs::read(&seen).unwrap(), b"old", "the file was changed before the log knew");
        let names: Vec<_> = fs::read_dir(seen.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1, "something was made before the log knew");
        assert!(matches!(intents[0].previous, FileContent::Bytes(b"old")));
        let temp = intents[0].temp.as_ref().unwrap();
        assert_eq!(temp.parent(), seen.parent());
        Ok(())
    });
    let before = observed(&files, &file);
    let written = write(&files, &file, b"new").unwrap();
    let change = Change::new(&file, before.clone(), Node::File(written.after.clone()));
    // The time of the change is not known before.
    let after = FileNode { modified: None, ..written.after };
    let intended = Change::new(&file, before, Node::File(after));
    assert_eq!(
        log.events(),
        [
            RecordEvent::Intended { change: intended, bytes: Some(b"old".to_vec()) },
            RecordEvent::Changed(change)
        ]
    );
    assert_eq!(fixture.names("ws"), ["file"]);
}

#[test]
fn new_directories_are_recorded() {
    let fixture = Fixture::new();
    let workspace = fixture.ws("");
    let (files, log) = fixture.hooked(move |_| {
        assert_eq!(fs::read_dir(&workspace).unwrap().count(), 0, "a directory was made before the log knew");
        Ok(())
    });
    write(&files, &fixture.ws("a/b/file"), b"new").unwrap();
    let (a, b, file) = (fixture.ws("a"), fixture.ws("a/b"), fixture.ws("a/b/file"));
    let events = log.events();
    assert_eq!(paths_of(&events), [&a, &b, &file, &a, &b, &file].map(std::path::PathBuf::as_path));
    assert!(
        events[..3].iter().all(
            |events| matches!(events, RecordEvent::Intended { change, bytes: None } if change.before == Node::Absent)
        )
    );
    assert_eq!(log.changes()[0].after, Node::directory(mode(&a)));
}

#[test]
fn failed_record_changes_nothing() {
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", "old");
    let (files, log) = fixture.hooked(|_| Err(ToolError::failed("the disk is full")));
    for path in [file.clone(), fixture.ws("new"), fixture.ws("a/b/new")] {
        let error = write(&files, &path, b"new").unwrap_err();
        assert_eq!(error.message, "the disk is full");
    }
    assert_eq!((fixture.names("ws"), fs::read(&file).unwrap()), (vec!["file".to_owned()], b"old".to_vec()));
    assert_eq!(log.changes(), []);
}

#[test]
fn failed_edit_and_cancel_change_nothing() {
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", "old");
    let (files, log) = fixture.recorded();
    for path in [file.clone(), fixture.ws("a/new")] {
        let error = files.update(&path, &mut |_| Err(ToolError::failed("no such text"))).unwrap_err();
        assert_eq!(error.message, "no such text");
    }
    fixture.cancel.cancel();
    assert_eq!(kind(write(&files, &file, b"new")), Err(ErrorKind::Interrupted));
    assert_eq!((fixture.names("ws"), fs::read(&file).unwrap()), (vec!["file".to_owned()], b"old".to_vec()));
    assert_eq!(log.events(), []);
}

#[test]
fn same_content_writes_nothing() {
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", "same");
    let inode = fs::metadata(&file).unwrap().ino();
    let (files, log) = fixture.recorded();
    let written = write(&files, &file, b"same").unwrap();
    assert_eq!(written.before, Node::File(written.after));
    assert_eq!(fs::metadata(&file).unwrap().ino(), inode);
    assert_eq!(log.events(), []);
    let empty = write(&files, &fixture.ws("empty"), b"").unwrap();
    assert_eq!((empty.before, read(&files, &fixture.ws("empty")).unwrap()), (Node::Absent, Vec::new()));
}

#[test]
fn other_hard_links_keep_the_old_content() {
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", "old");
    fs::hard_link(&file, fixture.ws("other")).unwrap();
    fs::hard_link(&file, fixture.path("out/third")).unwrap();
    let (files, log) = fixture.recorded();
    let written = write(&files, &file, b"new").unwrap();
    assert_eq!(written.other_names, 2);
    assert_eq!(fs::read(fixture.ws("other")).unwrap(), b"old");
    assert_eq!(fs::read(fixture.path("out/third")).unwrap(), b"old");
    assert!(
        matches!(log.events().last(), Some(RecordEvent::NotReversible(why)) if why.contains("2 other names"))
    );
}

#[test]
fn unwritable_directory_leaves_no_temporary_file() {
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", "old");
    set_mode(&file, 0o666);
    set_mode(&fixture.ws(""), 0o555);
    set_mode(&fixture.base, 0o755);
    let (files, log) = fixture.recorded();
    assert_eq!(kind(as_unprivileged_user(|| write(&files, &file, b"new"))), Err(ErrorKind::PermissionDenied));
    assert_eq!(
        kind(as_unprivileged_user(|| write(&files, &fixture.ws("a/b"), b"new"))),
        Err(ErrorKind::PermissionDenied)
    );
    assert_eq!(log.changes(), []);
    set_mode(&fixture.ws(""), 0o755);
    assert_eq!((fs::read(&file).unwrap(), fixture.names("ws")), (b"old".to_vec(), vec!["file".to_owned()]));
}
