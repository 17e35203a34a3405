//! What is protected stays closed, by whatever way it is reached.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haft_tool::{ErrorKind, Files, Node, Reads, Restore, WalkRequest};

use crate::common::{SECRET, Stage, kind, put_back, read, with_and_without_openat2, write};

fn assert_denied(stage: &Stage, path: &Path) {
    let files = stage.files();
    for (what, result) in [
        ("open", kind(files.open(path))),
        ("kind", kind(files.kind(path))),
        ("update", kind(write(&files, path, b"new"))),
    ] {
        let closed = matches!(result, Err(ErrorKind::PermissionDenied | ErrorKind::InvalidPath));
        assert!(closed, "{what} {}: {result:?}", path.display());
    }
}

fn visited(stage: &Stage, root: PathBuf) -> Vec<PathBuf> {
    let found = Mutex::new(Vec::new());
    let walk = WalkRequest { root, hidden: true, ..WalkRequest::default() };
    stage
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
fn a_call_that_may_read_everywhere_reads_outside_but_writes_only_what_is_granted() {
    let mut stage = Stage::open();
    let out = stage.path("out/file");
    assert_eq!(read(&stage.files(), &out).unwrap(), SECRET);
    assert_eq!(
        read(&stage.files(), &stage.path("second/../out/./file")).map_err(|e| e.kind),
        Err(ErrorKind::InvalidPath)
    );
    assert!(matches!(stage.files().observe(&out).unwrap(), Node::File(_)));
    assert_eq!(stage.files().list(&stage.path("out")).unwrap().len(), 1);
    assert_eq!(visited(&stage, stage.path("out")), std::slice::from_ref(&out));
    assert_eq!(kind(write(&stage.files(), &out, b"new")), Err(ErrorKind::InvalidPath));
    let restore = Restore { path: &out, expect: &stage.files().observe(&out).unwrap(), to: &Node::Absent };
    assert_eq!(kind(put_back(&stage.files(), &restore)), Err(ErrorKind::InvalidPath));
    stage.assert_outside_untouched();
    stage.scope.grants = vec![out.clone()];
    write(&stage.files(), &out, b"granted").unwrap();
    assert_eq!(fs::read(&out).unwrap(), b"granted");
    assert_eq!(kind(write(&stage.files(), &stage.path("out/more"), b"new")), Err(ErrorKind::InvalidPath));
}

#[test]
fn a_grant_is_for_the_path_itself_and_not_for_where_a_link_leads() {
    let mut stage = Stage::new();
    fs::create_dir(stage.path("out/dir")).unwrap();
    let target = stage.put("out/dir/target", "old");
    let leaf = stage.link("dir/target", "out/leaf");
    stage.link("dir", "out/way");
    let way = stage.path("out/way/target");
    stage.scope.grants = vec![leaf.clone(), way.clone(), target.clone()];
    assert_eq!(kind(write(&stage.files(), &leaf, b"new")), Err(ErrorKind::InvalidPath));
    assert_eq!(kind(write(&stage.files(), &way, b"new")), Err(ErrorKind::InvalidPath));
    assert_eq!(fs::read(&target).unwrap(), b"old");
    write(&stage.files(), &target, b"new").unwrap();
    assert!(
        matches!(stage.files().observe(&target).unwrap(), Node::File(_)),
        "what may be written may be looked at"
    );
}

#[test]
fn what_is_protected_is_closed_by_every_way_outside() {
    with_and_without_openat2(|| {
        let stage = Stage::open();
        let ledger = stage.put("home/ledger.db", SECRET);
        stage.put("home/blobs/ab/cd", SECRET);
        stage.link(&ledger, "ws/link");
        stage.link(stage.path("home"), "ws/home");
        stage.link(stage.path("home"), "out/home");
        stage.link(&ledger, "out/link");
        let root = PathBuf::from("/proc/self/root").join(ledger.strip_prefix("/").unwrap());
        for path in [
            ledger,
            stage.path("home/none"),
            stage.path("out/../home/ledger.db"),
            stage.path("out/home/ledger.db"),
            stage.path("out/home/blobs/ab/cd"),
            stage.path("out/link"),
            stage.ws("../home/ledger.db"),
            stage.ws("link"),
            stage.ws("home/ledger.db"),
            root,
        ] {
            assert_denied(&stage, &path);
        }
        for path in
            ["home", "home/ledger.db", "out/home/ledger.db", "out/../home/ledger.db", "out/home/blobs"]
        {
            let result = kind(stage.files().observe(&stage.path(path)));
            assert_eq!(result, Err(ErrorKind::PermissionDenied), "{path}");
        }
        for path in ["home", "out/home", "home/blobs"] {
            assert_eq!(
                kind(stage.files().list(&stage.path(path))),
                Err(ErrorKind::PermissionDenied),
                "{path}"
            );
        }
        let restore =
            Restore { path: &stage.path("home/new"), expect: &Node::Absent, to: &Node::Dir { mode: 0o755 } };
        assert_eq!(kind(put_back(&stage.files(), &restore)), Err(ErrorKind::PermissionDenied));
        assert_eq!(stage.names("home"), ["blobs", "ledger.db"]);
        assert_eq!(fs::read(stage.path("home/ledger.db")).unwrap(), SECRET);
    });
}

#[test]
fn what_is_protected_inside_the_workspace_is_closed_too() {
    with_and_without_openat2(|| {
        for reads in [Reads::Roots, Reads::Everywhere] {
            let mut stage = Stage::new();
            stage.scope.reads = reads;
            stage.scope.protected = vec![stage.ws("secret"), stage.ws("haft.toml")];
            stage.put("ws/secret/file", SECRET);
            stage.put("ws/haft.toml", SECRET);
            stage.link("secret", "ws/relative");
            stage.link(stage.ws("secret"), "second/absolute");
            stage.link("haft.toml", "ws/config");
            for path in [
                "ws/secret/file",
                "ws/relative/file",
                "second/absolute/file",
                "ws/config",
                "ws/haft.toml",
                "ws/relative/../secret/file",
            ] {
                assert_denied(&stage, &stage.path(path));
            }
            let files = stage.files();
            assert_eq!(
                kind(write(&files, &stage.ws("relative/new/file"), b"new")),
                Err(ErrorKind::PermissionDenied)
            );
            assert_eq!(kind(files.observe(&stage.ws("relative/file"))), Err(ErrorKind::PermissionDenied));
            let restore = Restore {
                path: &stage.ws("relative/x"),
                expect: &Node::Absent,
                to: &Node::Dir { mode: 0o755 },
            };
            assert_eq!(kind(put_back(&files, &restore)), Err(ErrorKind::PermissionDenied));
            assert_eq!(stage.names("ws/secret"), ["file"]);
            assert_eq!(visited(&stage, stage.ws("")), [] as [PathBuf; 0]);
        }
    });
}

#[test]
fn a_hard_link_to_a_protected_file_is_as_closed_as_the_file() {
    with_and_without_openat2(|| {
        let stage = Stage::open();
        for protected in ["home/ledger.db", "home/blobs/ab/cd"] {
            let protected = stage.put(protected, SECRET);
            let alias = stage.ws("alias");
            fs::hard_link(&protected, &alias).unwrap();
            assert_denied(&stage, &alias);
            assert_eq!(kind(stage.files().observe(&alias)), Err(ErrorKind::PermissionDenied));
            let node = Node::File(haft_tool::FileNode {
                hash: blake3::hash(SECRET).to_hex().to_string(),
                size: SECRET.len() as u64,
                mode: crate::common::mode(&alias),
                owner: None,
                xattrs: Vec::new(),
                linked: None,
            });
            let restore = Restore { path: &alias, expect: &node, to: &Node::Absent };
            assert_eq!(kind(put_back(&stage.files(), &restore)), Err(ErrorKind::PermissionDenied));
            assert_eq!(visited(&stage, stage.ws("")), [] as [PathBuf; 0], "{}", protected.display());
            assert_eq!(fs::read(&protected).unwrap(), SECRET);
            fs::remove_file(alias).unwrap();
        }
        let free = stage.put("ws/free", "mine");
        fs::hard_link(&free, stage.ws("again")).unwrap();
        assert_eq!(read(&stage.files(), &free).unwrap(), b"mine", "any other hard link is open");
    });
}

#[test]
fn a_walk_finds_nothing_protected_also_when_it_starts_at_a_link() {
    with_and_without_openat2(|| {
        let stage = Stage::open();
        stage.put("home/ledger.db", SECRET);
        stage.put("home/blobs/ab/cd", SECRET);
        stage.link(&stage.base, "out/up");
        let found = visited(&stage, stage.path("out/up"));
        assert_eq!(found, [stage.path("out/up/out/file")]);
        assert_eq!(visited(&stage, stage.base.clone()), [stage.path("out/file")]);
    });
}

#[test]
fn what_linux_tells_about_processes_is_closed() {
    with_and_without_openat2(|| {
        let stage = Stage::open();
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
            assert_denied(&stage, Path::new(&path));
            let observed = stage.files().observe(Path::new(&path));
            assert!(!matches!(observed, Ok(Node::File(_))), "{path}: {observed:?}");
        }
        stage.link("/proc/self", "out/self");
        assert_denied(&stage, &stage.path("out/self/environ"));
        assert_eq!(kind(stage.files().list(Path::new("/proc/self"))), Err(ErrorKind::PermissionDenied));
        let walked = Mutex::new(Vec::new());
        let walk = WalkRequest { root: "/proc".into(), ..WalkRequest::default() };
        let visit = |path: &Path| walked.lock().unwrap().push(path.to_owned());
        stage
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
        assert!(walked.iter().all(|path| !path.ends_with("environ")), "a walk came to a process");
        assert!(read(&stage.files(), Path::new("/proc/version")).unwrap().starts_with(b"Linux"));
    });
}

#[test]
fn a_workspace_that_is_the_whole_machine_shows_no_process_either() {
    with_and_without_openat2(|| {
        let mut stage = Stage::new();
        stage.scope.workspace = "/".into();
        stage.scope.roots = vec!["/".into()];
        stage.link("/proc/self/environ", "out/link");
        for path in
            [PathBuf::from("/proc/self/environ"), PathBuf::from("/proc/1/environ"), stage.path("out/link")]
        {
            assert_denied(&stage, &path);
            assert_ne!(kind(stage.files().observe(Path::new("/proc/self/environ"))), Ok(()));
        }
        assert_denied(&stage, &stage.path("home/ledger.db"));
        stage.link(stage.path("out/file"), "second/link");
        assert_eq!(
            read(&stage.files(), &stage.path("second/link")).unwrap(),
            SECRET,
            "all links stay inside"
        );
    });
}

#[test]
fn a_call_that_may_not_write_does_not() {
    let mut stage = Stage::new();
    stage.put("ws/file", "old");
    stage.scope.writes = false;
    let file = stage.ws("file");
    assert_eq!(kind(write(&stage.files(), &file, b"new")), Err(ErrorKind::PermissionDenied));
    let expect = stage.files().observe(&file).unwrap();
    let restore = Restore { path: &file, expect: &expect, to: &Node::Absent };
    assert_eq!(kind(put_back(&stage.files(), &restore)), Err(ErrorKind::PermissionDenied));
    assert_eq!(fs::read(file).unwrap(), b"old");
}
