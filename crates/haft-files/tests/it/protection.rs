//! Protected paths are refused however they are reached.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haft_tool::{ErrorKind, Files, Node, Reads, WalkRequest};

use crate::fixture::{Fixture, Restore, SECRET, kind, read, restore_one, with_and_without_openat2, write};

fn assert_denied(fixture: &Fixture, path: &Path) {
    let files = fixture.files();
    for (what, result) in [
        ("open", kind(files.open(path))),
        ("kind", kind(files.kind(path))),
        ("update", kind(write(&files, path, b"new"))),
    ] {
        let closed = matches!(result, Err(ErrorKind::PermissionDenied | ErrorKind::InvalidPath));
        assert!(closed, "{what} {}: {result:?}", path.display());
    }
}

fn visited(fixture: &Fixture, root: PathBuf) -> Vec<PathBuf> {
    let found = Mutex::new(Vec::new());
    let walk = WalkRequest { root, hidden: true, ..WalkRequest::default() };
    fixture
        .files()
        .walk(&walk, &mut || {
            Box::new(|file| {
                if file.open().is_ok() {
                    found.lock().unwrap().push(file.path().to_owned());
                }
                ControlFlow::Continue(())
            })
        })
        .unwrap();
    let mut found = found.into_inner().unwrap();
    found.sort();
    found
}

#[test]
fn reads_everywhere_writes_only_grants() {
    let mut fixture = Fixture::open();
    let out = fixture.path("out/file");
    assert_eq!(read(&fixture.files(), &out).unwrap(), SECRET);
    assert_eq!(
        read(&fixture.files(), &fixture.path("second/../out/./file")).map_err(|e| e.kind),
        Err(ErrorKind::InvalidPath)
    );
    assert!(matches!(fixture.files().observe(&out).unwrap(), Node::File(_)));
    assert_eq!(fixture.files().list(&fixture.path("out")).unwrap().len(), 1);
    assert_eq!(visited(&fixture, fixture.path("out")), std::slice::from_ref(&out));
    assert_eq!(kind(write(&fixture.files(), &out, b"new")), Err(ErrorKind::InvalidPath));
    let restore = Restore { path: &out, expect: &fixture.files().observe(&out).unwrap(), to: &Node::Absent };
    assert_eq!(kind(restore_one(&fixture.files(), &restore)), Err(ErrorKind::InvalidPath));
    fixture.assert_outside_untouched();
    fixture.scope.grants = vec![out.clone()];
    write(&fixture.files(), &out, b"granted").unwrap();
    assert_eq!(fs::read(&out).unwrap(), b"granted");
    assert_eq!(kind(write(&fixture.files(), &fixture.path("out/more"), b"new")), Err(ErrorKind::InvalidPath));
}

#[test]
fn grant_does_not_follow_links() {
    let mut fixture = Fixture::new();
    fs::create_dir(fixture.path("out/dir")).unwrap();
    let target = fixture.put("out/dir/target", "old");
    let leaf = fixture.link("dir/target", "out/leaf");
    fixture.link("dir", "out/way");
    let way = fixture.path("out/way/target");
    fixture.scope.grants = vec![leaf.clone(), way.clone(), target.clone()];
    assert_eq!(kind(write(&fixture.files(), &leaf, b"new")), Err(ErrorKind::InvalidPath));
    assert_eq!(kind(write(&fixture.files(), &way, b"new")), Err(ErrorKind::InvalidPath));
    assert_eq!(fs::read(&target).unwrap(), b"old");
    write(&fixture.files(), &target, b"new").unwrap();
    assert!(
        matches!(fixture.files().observe(&target).unwrap(), Node::File(_)),
        "what may be written may be looked at"
    );
}

#[test]
fn protected_paths_outside_are_refused() {
    with_and_without_openat2(|| {
        let fixture = Fixture::open();
        let ledger = fixture.put("home/ledger.db", SECRET);
        fixture.put("home/blobs/ab/cd", SECRET);
        fixture.link(&ledger, "ws/link");
        fixture.link(fixture.path("home"), "ws/home");
        fixture.link(fixture.path("home"), "out/home");
        fixture.link(&ledger, "out/link");
        let root = PathBuf::from("/proc/self/root").join(ledger.strip_prefix("/").unwrap());
        for path in [
            ledger,
            fixture.path("home/none"),
            fixture.path("out/../home/ledger.db"),
            fixture.path("out/home/ledger.db"),
            fixture.path("out/home/blobs/ab/cd"),
            fixture.path("out/link"),
            fixture.ws("../home/ledger.db"),
            fixture.ws("link"),
            fixture.ws("home/ledger.db"),
            root,
        ] {
            assert_denied(&fixture, &path);
        }
        for path in
            ["home", "home/ledger.db", "out/home/ledger.db", "out/../home/ledger.db", "out/home/blobs"]
        {
            let result = kind(fixture.files().observe(&fixture.path(path)));
            assert_eq!(result, Err(ErrorKind::PermissionDenied), "{path}");
        }
        for path in ["home", "out/home", "home/blobs"] {
            assert_eq!(
                kind(fixture.files().list(&fixture.path(path))),
                Err(ErrorKind::PermissionDenied),
                "{path}"
            );
        }
        let restore =
            Restore { path: &fixture.path("home/new"), expect: &Node::Absent, to: &Node::directory(0o755) };
        assert_eq!(kind(restore_one(&fixture.files(), &restore)), Err(ErrorKind::PermissionDenied));
        assert_eq!(fixture.names("home"), ["blobs", "ledger.db"]);
        assert_eq!(fs::read(fixture.path("home/ledger.db")).unwrap(), SECRET);
    });
}

#[test]
fn protected_paths_in_the_workspace_are_refused() {
    with_and_without_openat2(|| {
        for reads in [Reads::Roots, Reads::Everywhere] {
            let mut fixture = Fixture::new();
            fixture.scope.reads = reads;
            fixture.scope.protected = vec![fixture.ws("secret"), fixture.ws("haft.toml")];
            fixture.put("ws/secret/file", SECRET);
            fixture.put("ws/haft.toml", SECRET);
            fixture.link("secret", "ws/relative");
            fixture.link(fixture.ws("secret"), "second/absolute");
            fixture.link("haft.toml", "ws/config");
            for path in [
                "ws/secret/file",
                "ws/relative/file",
                "second/absolute/file",
                "ws/config",
                "ws/haft.toml",
                "ws/relative/../secret/file",
            ] {
                assert_denied(&fixture, &fixture.path(path));
            }
            let files = fixture.files();
            assert_eq!(
                kind(write(&files, &fixture.ws("relative/new/file"), b"new")),
                Err(ErrorKind::PermissionDenied)
            );
            assert_eq!(kind(files.observe(&fixture.ws("relative/file"))), Err(ErrorKind::PermissionDenied));
            let restore = Restore {
                path: &fixture.ws("relative/x"),
                expect: &Node::Absent,
                to: &Node::directory(0o755),
            };
            assert_eq!(kind(restore_one(&files, &restore)), Err(ErrorKind::PermissionDenied));
            assert_eq!(fixture.names("ws/secret"), ["file"]);
            assert_eq!(visited(&fixture, fixture.ws("")), [] as [PathBuf; 0]);
        }
    });
}

#[test]
fn hard_link_to_a_protected_file_is_refused() {
    with_and_without_openat2(|| {
        let fixture = Fixture::open();
        for protected in ["home/ledger.db", "home/blobs/ab/cd"] {
            let protected = fixture.put(protected, SECRET);
            let alias = fixture.ws("alias");
            fs::hard_link(&protected, &alias).unwrap();
            assert_denied(&fixture, &alias);
            assert_eq!(kind(fixture.files().observe(&alias)), Err(ErrorKind::PermissionDenied));
            let node = Node::File(haft_tool::FileNode {
                hash: blake3::hash(SECRET).to_hex().to_string(),
                size: SECRET.len() as u64,
                mode: crate::fixture::mode(&alias),
                owner: None,
                xattrs: Vec::new(),
                linked: None,
                modified: None,
            });
            let restore = Restore { path: &alias, expect: &node, to: &Node::Absent };
            assert_eq!(kind(restore_one(&fixture.files(), &restore)), Err(ErrorKind::PermissionDenied));
            assert_eq!(visited(&fixture, fixture.ws("")), [] as [PathBuf; 0], "{}", protected.display());
            assert_eq!(fs::read(&protected).unwrap(), SECRET);
            fs::remove_file(alias).unwrap();
        }
        let free = fixture.put("ws/free", "mine");
        fs::hard_link(&free, fixture.ws("again")).unwrap();
        assert_eq!(read(&fixture.files(), &free).unwrap(), b"mine", "any other hard link can be read");
    });
}

#[test]
fn walk_skips_protected_paths() {
    with_and_without_openat2(|| {
        let fixture = Fixture::open();
        fixture.put("home/ledger.db", SECRET);
        fixture.put("home/blobs/ab/cd", SECRET);
        fixture.link(&fixture.base, "out/up");
        let found = visited(&fixture, fixture.path("out/up"));
        assert_eq!(found, [fixture.path("out/up/out/file")]);
        assert_eq!(visited(&fixture, fixture.base.clone()), [fixture.path("out/file")]);
    });
}

#[test]
fn process_files_in_proc_are_refused() {
    with_and_without_openat2(|| {
        let fixture = Fixture::open();
        let own = std::process::id();
        for path in [
            "/proc/self/environ".to_owned(),
            "/proc/1/environ".to_owned(),
            format!("/proc/{own}/environ"),
            format!("/proc/{own}/task/{own}/environ"),
            "/proc/thread-self/environ".to_owned(),
            "/proc/self/task/../environ".to_owned(),
            "/proc/self/mem".to_owned(),
            "/proc/self/maps".to_owned(),
            "/proc/self/root/etc/hostname".to_owned(),
            "/proc/self/cwd/Cargo.toml".to_owned(),
            "/proc/self/fd/0".to_owned(),
            "/dev/stdin".to_owned(),
        ] {
            assert_denied(&fixture, Path::new(&path));
            let observed = fixture.files().observe(Path::new(&path));
            assert!(!matches!(observed, Ok(Node::File(_))), "{path}: {observed:?}");
        }
        fixture.link("/proc/self", "out/self");
        assert_denied(&fixture, &fixture.path("out/self/environ"));
        assert_eq!(kind(fixture.files().list(Path::new("/proc/self"))), Err(ErrorKind::PermissionDenied));
        let walked = Mutex::new(Vec::new());
        let walk = WalkRequest { root: "/proc".into(), ..WalkRequest::default() };
        let visit = |path: &Path| walked.lock().unwrap().push(path.to_owned());
        fixture
            .files()
            .walk(&walk, &mut || {
                Box::new(|file| {
                    visit(file.path());
                    ControlFlow::Continue(())
                })
            })
            .unwrap();
        let walked = walked.into_inner().unwrap();
        assert!(walked.contains(&"/proc/version".into()));
        assert!(walked.iter().all(|path| !path.ends_with("environ")), "the walk reached a process");
        assert!(read(&fixture.files(), Path::new("/proc/version")).unwrap().starts_with(b"Linux"));
    });
}

#[test]
fn workspace_root_slash_refuses_process_files() {
    with_and_without_openat2(|| {
        let mut fixture = Fixture::new();
        fixture.scope.workspace = "/".into();
        fixture.scope.roots = vec!["/".into()];
        fixture.link("/proc/self/environ", "out/link");
        for path in
            [PathBuf::from("/proc/self/environ"), PathBuf::from("/proc/1/environ"), fixture.path("out/link")]
        {
            assert_denied(&fixture, &path);
            assert_ne!(kind(fixture.files().observe(Path::new("/proc/self/environ"))), Ok(()));
        }
        assert_denied(&fixture, &fixture.path("home/ledger.db"));
        fixture.link(fixture.path("out/file"), "second/link");
        assert_eq!(
            read(&fixture.files(), &fixture.path("second/link")).unwrap(),
            SECRET,
            "all links stay inside"
        );
    });
}

#[test]
fn read_only_call_cannot_write() {
    let mut fixture = Fixture::new();
    fixture.put("ws/file", "old");
    fixture.scope.writes = false;
    let file = fixture.ws("file");
    assert_eq!(kind(write(&fixture.files(), &file, b"new")), Err(ErrorKind::PermissionDenied));
    let expect = fixture.files().observe(&file).unwrap();
    let restore = Restore { path: &file, expect: &expect, to: &Node::Absent };
    assert_eq!(kind(restore_one(&fixture.files(), &restore)), Err(ErrorKind::PermissionDenied));
    assert_eq!(fs::read(file).unwrap(), b"old");
}
