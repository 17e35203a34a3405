//! No path leads out of the roots.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use haft_tool::{ErrorKind, FileKind, Files, Node, Restore, ToolError, WalkRequest};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::common::{SECRET, Stage, is_temporary, kind, put_back, read, with_and_without_openat2, write};

/// Asserts that no operation gets through `path`, and that nothing changed outside.
fn assert_closed(stage: &Stage, path: &Path) {
    let files = stage.files();
    let refused = |what: &str, result: Result<(), ErrorKind>| {
        let expected = [ErrorKind::InvalidPath, ErrorKind::PermissionDenied, ErrorKind::FileNotFound];
        assert!(result.is_err_and(|kind| expected.contains(&kind)), "{what} {}: {result:?}", path.display());
    };
    refused("open", kind(files.open(path)));
    refused("kind", kind(files.kind(path)));
    refused("list", kind(files.list(path)));
    refused("update", kind(write(&files, path, b"new")));
    refused("update below", kind(write(&files, &path.join("new"), b"new")));
    refused("observe below", kind(files.observe(&path.join("file"))));
    let restore = Restore { path: &path.join("file"), expect: &Node::Absent, to: &Node::Dir { mode: 0o755 } };
    refused("restore below", kind(put_back(&files, &restore)));
    let walk = WalkRequest { root: path.to_owned(), ..WalkRequest::default() };
    let walked = files.walk(&walk, &mut || Box::new(|file| panic!("walked to {}", file.path().display())));
    refused("walk", kind(walked));
    stage.assert_outside_untouched();
}

#[test]
fn a_path_by_words_alone_leads_nowhere_outside() {
    with_and_without_openat2(|| {
        let stage = Stage::new();
        fs::create_dir(stage.ws("dir")).unwrap();
        for path in
            ["../out", "../out/file", "dir/../../out", "dir/../../out/file", "..", "../../../../../../etc"]
        {
            assert_closed(&stage, &stage.ws(path));
        }
        for path in
            [stage.path("out"), stage.path("out/file"), PathBuf::from("/etc/hostname"), PathBuf::from("/")]
        {
            assert_closed(&stage, &path);
        }
        for path in [stage.path("out"), stage.path("out/file"), stage.ws("../out/file")] {
            assert_eq!(kind(stage.files().observe(&path)), Err(ErrorKind::InvalidPath), "{}", path.display());
        }
    });
}

#[test]
fn a_path_prefix_is_not_a_parent() {
    with_and_without_openat2(|| {
        let mut stage = Stage::new();
        let twin = stage.put("ws-evil/file", SECRET);
        assert_eq!(kind(stage.files().open(&twin)), Err(ErrorKind::InvalidPath));
        assert_eq!(kind(write(&stage.files(), &twin, b"new")), Err(ErrorKind::InvalidPath));
        assert_eq!(kind(stage.files().observe(&twin)), Err(ErrorKind::InvalidPath));
        let link = stage.link(&twin, "ws/link");
        assert_eq!(kind(stage.files().open(&link)), Err(ErrorKind::InvalidPath));
        assert_eq!(kind(write(&stage.files(), &link, b"new")), Err(ErrorKind::InvalidPath));
        stage.scope.protected = vec![stage.path("ws/a")];
        let open = stage.put("ws/ab", "free");
        assert_eq!(read(&stage.files(), &open).unwrap(), b"free");
        assert_eq!(fs::read(twin).unwrap(), SECRET);
    });
}

#[test]
fn links_that_stay_inside_are_followed_for_reading_and_writing_and_stay_links() {
    with_and_without_openat2(|| {
        let stage = Stage::new();
        stage.put("ws/dir/file", "1");
        stage.put("second/file", "1");
        fs::create_dir(stage.ws("deep")).unwrap();
        stage.link("dir/file", "ws/relative");
        stage.link(stage.ws("dir/file"), "ws/absolute");
        stage.link("absolute", "ws/chain");
        stage.link("../dir/../chain", "ws/deep/long");
        stage.link("dir", "ws/directory");
        stage.link(stage.ws("dir"), "ws/whole");
        stage.link(stage.path("second"), "ws/other");
        stage.link("./dir/", "ws/slash");
        let (files, journal) = stage.recorded();
        let targets = [
            ("relative", "ws/dir/file"),
            ("absolute", "ws/dir/file"),
            ("chain", "ws/dir/file"),
            ("deep/long", "ws/dir/file"),
            ("directory/file", "ws/dir/file"),
            ("whole/file", "ws/dir/file"),
            ("slash/file", "ws/dir/file"),
            ("other/file", "second/file"),
        ];
        for (round, (link, target)) in targets.into_iter().enumerate() {
            let (link, target) = (stage.ws(link), stage.path(target));
            assert_eq!(read(&files, &link).unwrap(), fs::read(&target).unwrap(), "{}", link.display());
            assert_eq!(files.kind(&link).unwrap(), FileKind::File);
            let bytes = format!("round {round}").into_bytes();
            assert_eq!(write(&files, &link, &bytes).unwrap().path, target, "the true place is told");
            assert_eq!(fs::read(&target).unwrap(), bytes);
            assert_eq!(journal.changes().pop().unwrap().path, target);
        }
        for link in ["relative", "absolute", "chain", "deep/long", "directory", "whole", "other", "slash"] {
            assert!(stage.ws(link).symlink_metadata().unwrap().is_symlink(), "{link}");
        }
        for link in ["directory", "whole", "slash"] {
            let names: Vec<_> =
                files.list(&stage.ws(link)).unwrap().into_iter().map(|entry| entry.name).collect();
            assert_eq!(names, ["file"], "{link}");
        }
        assert_eq!(
            files.observe(&stage.ws("chain")).unwrap(),
            Node::Link { target: "absolute".into() },
            "a link is looked at, not through"
        );
        let mut found = 0;
        let walk = WalkRequest { root: stage.ws("whole"), ..WalkRequest::default() };
        let count = std::sync::Mutex::new(&mut found);
        files
            .walk(&walk, &mut || {
                Box::new(|file| {
                    assert_eq!(file.path(), stage.ws("whole/file"));
                    **count.lock().unwrap() += 1;
                    ControlFlow::Continue(())
                })
            })
            .unwrap();
        assert_eq!(found, 1);
    });
}

#[test]
fn a_link_to_nothing_that_stays_inside_is_where_a_new_file_is_made() {
    with_and_without_openat2(|| {
        let stage = Stage::new();
        stage.link("new/dir/file", "ws/relative");
        stage.link(stage.path("second/new/file"), "ws/absolute");
        let files = stage.files();
        assert_eq!(kind(files.open(&stage.ws("relative"))), Err(ErrorKind::FileNotFound));
        assert_eq!(kind(files.open(&stage.ws("absolute"))), Err(ErrorKind::FileNotFound));
        write(&files, &stage.ws("relative"), b"a").unwrap();
        write(&files, &stage.ws("absolute"), b"b").unwrap();
        assert_eq!(fs::read(stage.ws("new/dir/file")).unwrap(), b"a");
        assert_eq!(fs::read(stage.path("second/new/file")).unwrap(), b"b");
        assert!(stage.ws("relative").symlink_metadata().unwrap().is_symlink());
    });
}

#[test]
fn links_that_lead_out_are_closed() {
    with_and_without_openat2(|| {
        let stage = Stage::new();
        fs::create_dir(stage.ws("dir")).unwrap();
        fs::create_dir(stage.path("second/dir")).unwrap();
        stage.link("../out/file", "ws/relative");
        stage.link(stage.path("out/file"), "ws/absolute");
        stage.link(stage.path("out/none"), "ws/dangling");
        stage.link("../none", "ws/dangling-relative");
        stage.link(stage.path("out"), "ws/directory");
        stage.link("../out", "ws/directory-relative");
        stage.link("directory", "ws/chain");
        stage.link("dir/../../out", "ws/through");
        stage.link(stage.path("second/dir/../../out"), "ws/through-second");
        stage.link("missing/../../out", "ws/through-missing");
        stage.link("missing/../../../out/file", "ws/missing-file");
        stage.link("/", "ws/root");
        stage.link("/proc/self/root", "ws/proc-root");
        stage.link("/proc/self/cwd", "ws/proc-cwd");
        stage.link("/proc/self/fd/0", "ws/proc-fd");
        stage.link("/proc/self/environ", "ws/proc-environ");
        stage.link("loop", "ws/loop");
        stage.link("pong", "ws/ping");
        stage.link("ping", "ws/pong");
        for name in stage.names("ws").into_iter().filter(|name| name != "dir") {
            assert_closed(&stage, &stage.ws(&name));
        }
        for below in
            ["directory/file", "chain/file", "through/file", "directory/new/deep", "root/etc/hostname"]
        {
            assert_closed(&stage, &stage.ws(below));
        }
    });
}

#[test]
fn an_open_directory_of_the_process_is_no_door() {
    with_and_without_openat2(|| {
        let stage = Stage::new();
        let held = fs::File::open(stage.path("out")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&held);
        stage.link(format!("/proc/self/fd/{number}"), "ws/held");
        stage.link(format!("/dev/fd/{number}/file"), "ws/held-file");
        for name in ["held", "held/file", "held-file"] {
            assert_closed(&stage, &stage.ws(name));
        }
    });
}

#[test]
fn as_many_links_as_the_kernel_follows_are_followed_and_not_one_more() {
    with_and_without_openat2(|| {
        let stage = Stage::new();
        stage.put("ws/file", "end");
        let mut target = stage.ws("file");
        for step in 1..=41 {
            target = stage.link(&target, &format!("ws/link{step}"));
        }
        assert_eq!(read(&stage.files(), &stage.ws("link40")).unwrap(), b"end");
        let error = stage.files().open(&stage.ws("link41")).unwrap_err();
        assert_eq!(
            (error.kind, error.message.ends_with("too many links")),
            (ErrorKind::InvalidPath, true),
            "{error}"
        );
    });
}

#[test]
fn a_workspace_that_is_moved_away_is_still_the_one_that_was_opened() {
    let stage = Stage::new();
    stage.put("ws/file", "mine");
    let files = stage.files();
    fs::rename(stage.path("ws"), stage.path("moved")).unwrap();
    stage.link("out", "ws");
    assert_eq!(read(&files, &stage.ws("file")).unwrap(), b"mine");
    write(&files, &stage.ws("file"), b"new").unwrap();
    assert_eq!(fs::read(stage.path("out/file")).unwrap(), SECRET);
    assert_eq!(fs::read(stage.path("moved/file")).unwrap(), b"new");
}

/// How often something came through and how often it was refused.
#[derive(Default)]
struct Tally {
    through: usize,
    refused: usize,
}

impl Tally {
    /// Whether to go on: until both have happened often. A guard that never lets through ends it too.
    fn wants_more(&self, enough: usize) -> bool {
        self.through.min(self.refused) < enough && self.through.max(self.refused) < 2_000_000
    }

    fn count<T>(&mut self, result: Result<T, ToolError>) -> Option<T> {
        match result {
            Ok(value) => {
                self.through += 1;
                Some(value)
            }
            Err(error) => {
                use ErrorKind::{Conflict, FileNotFound, InvalidPath};
                assert!(
                    [Conflict, FileNotFound, InvalidPath].contains(&error.kind),
                    "{}: {error}",
                    error.kind
                );
                self.refused += 1;
                None
            }
        }
    }
}

#[test]
fn a_directory_that_is_swapped_for_a_link_again_and_again_leads_nowhere_outside() {
    with_and_without_openat2(|| {
        let stage = Stage::new();
        stage.put("ws/dir/file", "inside");
        for link in [stage.link(stage.path("out"), "ws/absolute"), stage.link("../out", "ws/relative")] {
            let (dir, files, over) = (stage.ws("dir"), stage.files(), AtomicBool::new(false));
            let file = dir.join("file");
            let swap = || renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            let (reads, writes) = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::SeqCst) {
                        swap();
                    }
                });
                let reading = scope.spawn(|| {
                    let mut tally = Tally::default();
                    while tally.wants_more(2_000) {
                        if let Some(bytes) = tally.count(read(&files, &file)) {
                            assert!(bytes.starts_with(b"inside"), "read from outside: {bytes:?}");
                        }
                        if let Some(Node::File(node)) = tally.count(files.observe(&file)) {
                            assert_ne!(node.hash, blake3::hash(SECRET).to_hex().to_string());
                        }
                        if let Some(entries) = tally.count(files.list(&dir)) {
                            assert!(
                                entries.iter().all(|entry| entry.size != SECRET.len() as u64),
                                "listed outside"
                            );
                        }
                    }
                    tally
                });
                let writing = scope.spawn(|| {
                    let mut tally = Tally::default();
                    while tally.wants_more(200) {
                        let round = tally.through;
                        tally.count(write(&files, &file, format!("inside {round}").as_bytes()));
                        tally.count(write(&files, &dir.join(format!("{round}/file")), b"inside, too"));
                    }
                    tally
                });
                let tallies = (reading.join(), writing.join());
                over.store(true, Ordering::SeqCst);
                (tallies.0.unwrap(), tallies.1.unwrap())
            });
            stage.assert_outside_untouched();
            for tally in [reads, writes] {
                assert!(tally.through > 0 && tally.refused > 0, "there was no race");
            }
            if dir.symlink_metadata().unwrap().is_symlink() {
                swap();
            }
            assert!(
                stage.names("ws/dir").iter().all(|name| !is_temporary(name)),
                "something was left behind"
            );
        }
    });
}
