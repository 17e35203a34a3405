//! No path leads out of the roots.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use haft_tool::{ErrorKind, FileKind, Files, Node, ToolError, WalkRequest};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::fixture::{
    Fixture, Restore, SECRET, is_temporary, kind, read, restore_one, with_and_without_openat2, write,
};

/// Asserts that no operation gets through `path`, and that nothing changed outside.
fn assert_refused(fixture: &Fixture, path: &Path) {
    let files = fixture.files();
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
    let restore = Restore { path: &path.join("file"), expect: &Node::Absent, to: &Node::directory(0o755) };
    refused("restore below", kind(restore_one(&files, &restore)));
    let walk = WalkRequest { root: path.to_owned(), ..WalkRequest::default() };
    let walked = files.walk(&walk, &mut || Box::new(|file| panic!("walked to {}", file.path().display())));
    refused("walk", kind(walked));
    fixture.assert_outside_untouched();
}

#[test]
fn lexical_paths_outside_are_refused() {
    with_and_without_openat2(|| {
        let fixture = Fixture::new();
        fs::create_dir(fixture.ws("dir")).unwrap();
        for path in
            ["../out", "../out/file", "dir/../../out", "dir/../../out/file", "..", "../../../../../../etc"]
        {
            assert_refused(&fixture, &fixture.ws(path));
        }
        for path in [
            fixture.path("out"),
            fixture.path("out/file"),
            PathBuf::from("/etc/hostname"),
            PathBuf::from("/"),
        ] {
            assert_refused(&fixture, &path);
        }
        for path in [fixture.path("out"), fixture.path("out/file"), fixture.ws("../out/file")] {
            assert_eq!(
                kind(fixture.files().observe(&path)),
                Err(ErrorKind::InvalidPath),
                "{}",
                path.display()
            );
        }
    });
}

#[test]
fn a_path_prefix_is_not_a_parent() {
    with_and_without_openat2(|| {
        let mut fixture = Fixture::new();
        let twin = fixture.put("ws-evil/file", SECRET);
        assert_eq!(kind(fixture.files().open(&twin)), Err(ErrorKind::InvalidPath));
        assert_eq!(kind(write(&fixture.files(), &twin, b"new")), Err(ErrorKind::InvalidPath));
        assert_eq!(kind(fixture.files().observe(&twin)), Err(ErrorKind::InvalidPath));
        let link = fixture.link(&twin, "ws/link");
        assert_eq!(kind(fixture.files().open(&link)), Err(ErrorKind::InvalidPath));
        assert_eq!(kind(write(&fixture.files(), &link, b"new")), Err(ErrorKind::InvalidPath));
        fixture.scope.protected = vec![fixture.path("ws/a")];
        let open = fixture.put("ws/ab", "free");
        assert_eq!(read(&fixture.files(), &open).unwrap(), b"free");
        assert_eq!(fs::read(twin).unwrap(), SECRET);
    });
}

#[test]
fn links_inside_are_followed_and_kept() {
    with_and_without_openat2(|| {
        let fixture = Fixture::new();
        fixture.put("ws/dir/file", "1");
        fixture.put("second/file", "1");
        fs::create_dir(fixture.ws("deep")).unwrap();
        fixture.link("dir/file", "ws/relative");
        fixture.link(fixture.ws("dir/file"), "ws/absolute");
        fixture.link("absolute", "ws/chain");
        fixture.link("../dir/../chain", "ws/deep/long");
        fixture.link("dir", "ws/directory");
        fixture.link(fixture.ws("dir"), "ws/whole");
        fixture.link(fixture.path("second"), "ws/other");
        fixture.link("./dir/", "ws/slash");
        let (files, log) = fixture.recorded();
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
            let (link, target) = (fixture.ws(link), fixture.path(target));
            assert_eq!(read(&files, &link).unwrap(), fs::read(&target).unwrap(), "{}", link.display());
            assert_eq!(files.kind(&link).unwrap(), FileKind::File);
            let bytes = format!("round {round}").into_bytes();
            assert_eq!(write(&files, &link, &bytes).unwrap().path, target, "the resolved path is returned");
            assert_eq!(fs::read(&target).unwrap(), bytes);
            assert_eq!(log.changes().pop().unwrap().path, target);
        }
        for link in ["relative", "absolute", "chain", "deep/long", "directory", "whole", "other", "slash"] {
            assert!(fixture.ws(link).symlink_metadata().unwrap().is_symlink(), "{link}");
        }
        for link in ["directory", "whole", "slash"] {
            let names: Vec<_> =
                files.list(&fixture.ws(link)).unwrap().into_iter().map(|entry| entry.name).collect();
            assert_eq!(names, ["file"], "{link}");
        }
        assert_eq!(
            files.observe(&fixture.ws("chain")).unwrap(),
            Node::link("absolute"),
            "a link is looked at, not through"
        );
        let mut found = 0;
        let walk = WalkRequest { root: fixture.ws("whole"), ..WalkRequest::default() };
        let count = std::sync::Mutex::new(&mut found);
        files
            .walk(&walk, &mut || {
                Box::new(|file| {
                    assert_eq!(file.path(), fixture.ws("whole/file"));
                    **count.lock().unwrap() += 1;
                    ControlFlow::Continue(())
                })
            })
            .unwrap();
        assert_eq!(found, 1);
    });
}

#[test]
fn dangling_link_inside_is_followed_for_a_new_file() {
    with_and_without_openat2(|| {
        let fixture = Fixture::new();
        fixture.link("new/dir/file", "ws/relative");
        fixture.link(fixture.path("second/new/file"), "ws/absolute");
        let files = fixture.files();
        assert_eq!(kind(files.open(&fixture.ws("relative"))), Err(ErrorKind::FileNotFound));
        assert_eq!(kind(files.open(&fixture.ws("absolute"))), Err(ErrorKind::FileNotFound));
        write(&files, &fixture.ws("relative"), b"a").unwrap();
        write(&files, &fixture.ws("absolute"), b"b").unwrap();
        assert_eq!(fs::read(fixture.ws("new/dir/file")).unwrap(), b"a");
        assert_eq!(fs::read(fixture.path("second/new/file")).unwrap(), b"b");
        assert!(fixture.ws("relative").symlink_metadata().unwrap().is_symlink());
    });
}

#[test]
fn links_outside_are_refused() {
    with_and_without_openat2(|| {
        let fixture = Fixture::new();
        fs::create_dir(fixture.ws("dir")).unwrap();
        fs::create_dir(fixture.path("second/dir")).unwrap();
        fixture.link("../out/file", "ws/relative");
        fixture.link(fixture.path("out/file"), "ws/absolute");
        fixture.link(fixture.path("out/none"), "ws/dangling");
        fixture.link("../none", "ws/dangling-relative");
        fixture.link(fixture.path("out"), "ws/directory");
        fixture.link("../out", "ws/directory-relative");
        fixture.link("directory", "ws/chain");
        fixture.link("dir/../../out", "ws/through");
        fixture.link(fixture.path("second/dir/../../out"), "ws/through-second");
        fixture.link("missing/../../out", "ws/through-missing");
        fixture.link("missing/../../../out/file", "ws/missing-file");
        fixture.link("/", "ws/root");
        fixture.link("/proc/self/root", "ws/proc-root");
        fixture.link("/proc/self/cwd", "ws/proc-cwd");
        fixture.link("/proc/self/fd/0", "ws/proc-fd");
        fixture.link("/proc/self/environ", "ws/proc-environ");
        fixture.link("loop", "ws/loop");
        fixture.link("pong", "ws/ping");
        fixture.link("ping", "ws/pong");
        for name in fixture.names("ws").into_iter().filter(|name| name != "dir") {
            assert_refused(&fixture, &fixture.ws(&name));
        }
        for below in
            ["directory/file", "chain/file", "through/file", "directory/new/deep", "root/etc/hostname"]
        {
            assert_refused(&fixture, &fixture.ws(below));
        }
    });
}

#[test]
fn proc_fd_links_are_refused() {
    with_and_without_openat2(|| {
        let fixture = Fixture::new();
        let held = fs::File::open(fixture.path("out")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&held);
        fixture.link(format!("/proc/self/fd/{number}"), "ws/held");
        fixture.link(format!("/dev/fd/{number}/file"), "ws/held-file");
        for name in ["held", "held/file", "held-file"] {
            assert_refused(&fixture, &fixture.ws(name));
        }
    });
}

#[test]
fn forty_links_are_followed() {
    with_and_without_openat2(|| {
        let fixture = Fixture::new();
        fixture.put("ws/file", "end");
        let mut target = fixture.ws("file");
        for step in 1..=41 {
            target = fixture.link(&target, &format!("ws/link{step}"));
        }
        assert_eq!(read(&fixture.files(), &fixture.ws("link40")).unwrap(), b"end");
        let error = fixture.files().open(&fixture.ws("link41")).unwrap_err();
        assert_eq!(
            (error.kind, error.message.ends_with("too many links")),
            (ErrorKind::InvalidPath, true),
            "{error}"
        );
    });
}

#[test]
fn moved_workspace_stays_open() {
    let fixture = Fixture::new();
    fixture.put("ws/file", "mine");
    let files = fixture.files();
    fs::rename(fixture.path("ws"), fixture.path("moved")).unwrap();
    fixture.link("out", "ws");
    assert_eq!(read(&files, &fixture.ws("file")).unwrap(), b"mine");
    write(&files, &fixture.ws("file"), b"new").unwrap();
    assert_eq!(fs::read(fixture.path("out/file")).unwrap(), SECRET);
    assert_eq!(fs::read(fixture.path("moved/file")).unwrap(), b"new");
}

/// How often an operation succeeded and how often it was refused.
#[derive(Default)]
struct Tally {
    through: usize,
    refused: usize,
}

impl Tally {
    /// Whether to continue: until both have happened often enough.
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
fn directory_swapped_for_a_link_does_not_lead_outside() {
    with_and_without_openat2(|| {
        let fixture = Fixture::new();
        fixture.put("ws/dir/file", "inside");
        for link in [fixture.link(fixture.path("out"), "ws/absolute"), fixture.link("../out", "ws/relative")]
        {
            let (dir, files, over) = (fixture.ws("dir"), fixture.files(), AtomicBool::new(false));
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
            fixture.assert_outside_untouched();
            for tally in [reads, writes] {
                assert!(tally.through > 0 && tally.refused > 0, "there was no race");
            }
            if dir.symlink_metadata().unwrap().is_symlink() {
                swap();
            }
            assert!(
                fixture.names("ws/dir").iter().all(|name| !is_temporary(name)),
                "something was left behind"
            );
        }
    });
}
