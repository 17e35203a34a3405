//! What a write changes, what it keeps, and what it tells the journal.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use haft_tool::FileContent;
use haft_tool::{Change, ErrorKind, Files, Node, ToolError};
use rustix::fs::{Gid, Uid, XattrFlags};

use crate::common::{Stage, Told, is_root, kind, mode, observed, read, set_mode, write};

/// Runs `work` as a user that is not root and owns nothing, if this is root; then also root's rights are tested.
fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
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

fn names_of(told: &[Told]) -> Vec<&Path> {
    told.iter()
        .filter_map(|told| match told {
            Told::Before { change, .. } | Told::Changed(change) => Some(change.path.as_path()),
            Told::NotReversible(_) => None,
        })
        .collect()
}

#[test]
fn mode_bits_stay() {
    let stage = Stage::new();
    for bits in [0o644, 0o755, 0o600, 0o777, 0o666, 0o400 | 0o200, 0o4755, 0o2755, 0o1644, 0o7777] {
        let file = stage.put("ws/file", "old");
        set_mode(&file, bits);
        let written = write(&stage.files(), &file, b"new").unwrap();
        assert_eq!((mode(&file), written.after.mode), (bits, bits), "{bits:o}");
        assert_eq!(Node::File(written.after), observed(&stage.files(), &file));
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_new_file_and_new_directories_get_what_the_umask_leaves() {
    let stage = Stage::new();
    fs::create_dir(stage.ws("plain")).unwrap();
    fs::write(stage.ws("plain/file"), "").unwrap();
    write(&stage.files(), &stage.ws("new/file"), b"1").unwrap();
    assert_eq!(mode(&stage.ws("new")), mode(&stage.ws("plain")));
    assert_eq!(mode(&stage.ws("new/file")), mode(&stage.ws("plain/file")));
}

#[test]
fn extended_attributes_stay_and_none_are_added() {
    let stage = Stage::new();
    let file = stage.put("ws/file", "old");
    let set = |name: &str, value: &[u8]| rustix::fs::setxattr(&file, name, value, XattrFlags::empty());
    if set("user.note", b"kept \xff\0").is_err() {
        let known = rustix::fs::setxattr(&file, "user.x", b"1", XattrFlags::empty());
        assert_eq!(known, Err(rustix::io::Errno::NOTSUP), "this file system has no attributes to keep");
        return;
    }
    // As many as fit: where the file system has room for them, their names are longer than a page.
    let more =
        (0..40).take_while(|number| set(&format!("user.{number}.{}", "n".repeat(200)), b"v").is_ok()).count();
    let written = write(&stage.files(), &file, b"new").unwrap();
    let mut value = [0; 64];
    let used = rustix::fs::getxattr(&file, "user.note", &mut value).unwrap();
    assert_eq!(&value[..used], b"kept \xff\0");
    assert_eq!(written.after.xattrs.iter().filter(|(name, _)| name.starts_with("user.")).count(), more + 1);
    assert_eq!(Node::File(written.after), observed(&stage.files(), &file));
}

#[test]
fn a_default_access_list_of_the_directory_widens_no_old_file() {
    let stage = Stage::new();
    let file = stage.put("ws/file", "old");
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
    if let Err(error) = rustix::fs::setxattr(stage.ws(""), name, &list, XattrFlags::empty()) {
        assert_eq!(error, rustix::io::Errno::NOTSUP, "this file system has no access lists");
        return;
    }
    write(&stage.files(), &file, b"new").unwrap();
    let mut value = [0; 256];
    assert!(
        rustix::fs::getxattr(&file, "system.posix_acl_access", &mut value).is_err(),
        "user 12345 was let in"
    );
    assert_eq!(mode(&file), 0o640);
}

#[test]
fn the_owner_stays_where_root_writes() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let file = stage.put("ws/file", "old");
    chown(&file, Some(1234), Some(2345)).unwrap();
    set_mode(&file, 0o6755);
    let (files, journal) = stage.recorded();
    let written = write(&files, &file, b"new").unwrap();
    let stat = fs::metadata(&file).unwrap();
    assert_eq!((stat.uid(), stat.gid(), mode(&file)), (1234, 2345, 0o6755));
    assert_eq!(written.after.owner, Some((1234, 2345)));
    assert!(!journal.told().iter().any(|told| matches!(told, Told::NotReversible(_))));
}

#[test]
fn a_file_keeps_its_group_in_a_directory_that_gives_another() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let file = stage.put("ws/file", "old");
    chown(stage.ws(""), None, Some(2345)).unwrap();
    set_mode(&stage.ws(""), 0o2775);
    let group = fs::metadata(&file).unwrap().gid();
    let written = write(&stage.files(), &file, b"new").unwrap();
    assert_eq!(fs::metadata(&file).unwrap().gid(), group);
    assert_eq!(written.after.owner, None);
    let new = write(&stage.files(), &stage.ws("new"), b"new").unwrap();
    assert_eq!(new.after.owner, Some((0, 2345)), "a new file gets the directory's group, and that is told");
}

#[test]
fn an_owner_that_cannot_be_kept_is_told_and_its_setuid_bit_is_not_inherited() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let file = stage.put("ws/file", "old");
    set_mode(&file, 0o4777);
    set_mode(&stage.ws(""), 0o777);
    set_mode(&stage.base, 0o755);
    let (files, journal) = stage.recorded();
    let written = as_nobody(|| write(&files, &file, b"new")).unwrap();
    let stat = fs::metadata(&file).unwrap();
    assert_eq!((stat.uid(), mode(&file)), (65_534, 0o777));
    assert_eq!((written.after.owner, written.after.mode), (None, 0o777));
    let told = journal.told();
    assert!(matches!(told.last(), Some(Told::NotReversible(why)) if why.contains("user 0")), "{told:?}");
}

#[test]
fn a_read_only_file_is_refused_though_its_directory_would_allow_it() {
    let stage = Stage::new();
    let file = stage.put("ws/file", "old");
    set_mode(&file, 0o444);
    set_mode(&stage.ws(""), 0o777);
    set_mode(&stage.base, 0o755);
    let (files, journal) = stage.recorded();
    let error = as_nobody(|| write(&files, &file, b"new")).unwrap_err();
    assert_eq!(
        (error.kind, error.message.contains("read-only")),
        (ErrorKind::PermissionDenied, true),
        "{error}"
    );
    assert_eq!(journal.told(), []);
    assert_eq!((fs::read(&file).unwrap(), stage.names("ws")), (b"old".to_vec(), vec!["file".to_owned()]));
}

#[test]
fn the_journal_knows_the_old_bytes_before_anything_changes() {
    let stage = Stage::new();
    let file = stage.put("ws/file", "old");
    let seen = file.clone();
    let (files, journal) = stage.hooked(move |intents| {
        assert_eq!(fs::read(&seen).unwrap(), b"old", "the file was changed before the journal knew");
        let names: Vec<_> = fs::read_dir(seen.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1, "something was made before the journal knew");
        assert!(matches!(intents[0].previous, FileContent::Bytes(b"old")));
        let temp = intents[0].temp.as_ref().unwrap();
        assert_eq!(temp.parent(), seen.parent());
        Ok(())
    });
    let before = observed(&files, &file);
    let written = write(&files, &file, b"new").unwrap();
    let change = Change::new(&file, before, Node::File(written.after));
    assert_eq!(
        journal.told(),
        [Told::Before { change: change.clone(), bytes: Some(b"old".to_vec()) }, Told::Changed(change)]
    );
    assert_eq!(stage.names("ws"), ["file"]);
}

#[test]
fn new_directories_are_told_before_they_are_made_and_again_when_they_are() {
    let stage = Stage::new();
    let workspace = stage.ws("");
    let (files, journal) = stage.hooked(move |_| {
        assert_eq!(
            fs::read_dir(&workspace).unwrap().count(),
            0,
            "a directory was made before the journal knew"
        );
        Ok(())
    });
    write(&files, &stage.ws("a/b/file"), b"new").unwrap();
    let (a, b, file) = (stage.ws("a"), stage.ws("a/b"), stage.ws("a/b/file"));
    let told = journal.told();
    assert_eq!(names_of(&told), [&a, &b, &file, &a, &b, &file].map(std::path::PathBuf::as_path));
    assert!(
        told[..3].iter().all(
            |told| matches!(told, Told::Before { change, bytes: None } if change.before == Node::Absent)
        )
    );
    assert_eq!(journal.changes()[0].after, Node::Dir { mode: mode(&a) });
}

#[test]
fn if_the_journal_fails_nothing_has_changed() {
    let stage = Stage::new();
    let file = stage.put("ws/file", "old");
    let (files, journal) = stage.hooked(|_| Err(ToolError::failed("the disk is full")));
    for path in [file.clone(), stage.ws("new"), stage.ws("a/b/new")] {
        let error = write(&files, &path, b"new").unwrap_err();
        assert_eq!(error.message, "the disk is full");
    }
    assert_eq!((stage.names("ws"), fs::read(&file).unwrap()), (vec!["file".to_owned()], b"old".to_vec()));
    assert_eq!(journal.changes(), []);
}

#[test]
fn if_the_edit_fails_or_the_call_is_cancelled_nothing_has_changed_and_nothing_is_told() {
    let stage = Stage::new();
    let file = stage.put("ws/file", "old");
    let (files, journal) = stage.recorded();
    for path in [file.clone(), stage.ws("a/new")] {
        let error = files.update(&path, &mut |_| Err(ToolError::failed("no such text"))).unwrap_err();
        assert_eq!(error.message, "no such text");
    }
    stage.cancel.cancel();
    assert_eq!(kind(write(&files, &file, b"new")), Err(ErrorKind::Interrupted));
    assert_eq!((stage.names("ws"), fs::read(&file).unwrap()), (vec!["file".to_owned()], b"old".to_vec()));
    assert_eq!(journal.told(), []);
}

#[test]
fn the_same_bytes_again_write_nothing_and_tell_nothing() {
    let stage = Stage::new();
    let file = stage.put("ws/file", "same");
    let inode = fs::metadata(&file).unwrap().ino();
    let (files, journal) = stage.recorded();
    let written = write(&files, &file, b"same").unwrap();
    assert_eq!(written.before, Node::File(written.after));
    assert_eq!(fs::metadata(&file).unwrap().ino(), inode);
    assert_eq!(journal.told(), []);
    let empty = write(&files, &stage.ws("empty"), b"").unwrap();
    assert_eq!((empty.before, read(&files, &stage.ws("empty")).unwrap()), (Node::Absent, Vec::new()));
}

#[test]
fn the_other_names_of_a_file_keep_the_old_bytes_and_that_is_told() {
    let stage = Stage::new();
    let file = stage.put("ws/file", "old");
    fs::hard_link(&file, stage.ws("other")).unwrap();
    fs::hard_link(&file, stage.path("out/third")).unwrap();
    let (files, journal) = stage.recorded();
    let written = write(&files, &file, b"new").unwrap();
    assert_eq!(written.other_names, 2);
    assert_eq!(fs::read(stage.ws("other")).unwrap(), b"old");
    assert_eq!(fs::read(stage.path("out/third")).unwrap(), b"old");
    assert!(matches!(journal.told().last(), Some(Told::NotReversible(why)) if why.contains("2 other name")));
}

#[test]
fn a_directory_that_cannot_be_written_leaves_the_file_and_no_rest() {
    let stage = Stage::new();
    let file = stage.put("ws/file", "old");
    set_mode(&file, 0o666);
    set_mode(&stage.ws(""), 0o555);
    set_mode(&stage.base, 0o755);
    let (files, journal) = stage.recorded();
    assert_eq!(kind(as_nobody(|| write(&files, &file, b"new"))), Err(ErrorKind::PermissionDenied));
    assert_eq!(kind(as_nobody(|| write(&files, &stage.ws("a/b"), b"new"))), Err(ErrorKind::PermissionDenied));
    assert_eq!(journal.changes(), []);
    set_mode(&stage.ws(""), 0o755);
    assert_eq!((fs::read(&file).unwrap(), stage.names("ws")), (b"old".to_vec(), vec!["file".to_owned()]));
}
