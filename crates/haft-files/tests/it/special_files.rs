//! Special files and unusual names give clear errors and never block.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use haft_tool::{ErrorKind, FileKind, Files, Node, WalkRequest};
use rustix::fs::{CWD, FileType, Mode, mkdirat, mknodat, openat};

use crate::fixture::{Fixture, kind, observed, read, with_and_without_openat2, write};

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
}

#[test]
fn directories_fifos_and_sockets_are_refused_without_blocking() {
    with_and_without_openat2(|| {
        let fixture = Fixture::new();
        fs::create_dir(fixture.ws("dir")).unwrap();
        fifo(&fixture.ws("fifo"));
        let _listener = UnixListener::bind(fixture.ws("socket")).unwrap();
        fixture.link("fifo", "ws/to-fifo");
        let files = fixture.files();
        for (name, what) in [
            ("dir", FileKind::Dir),
            ("fifo", FileKind::Special),
            ("socket", FileKind::Special),
            ("to-fifo", FileKind::Special),
        ] {
            let path = fixture.ws(name);
            assert_eq!(files.kind(&path).unwrap(), what, "{name}");
            let error = files.open(&path).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidPath, "{name}: {error}");
            assert!(error.message.contains("not a file"), "{error}");
            let error = write(&files, &path, b"new").unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidPath, "{name}: {error}");
            assert!(error.message.contains("not a file"), "{error}");
            if what != FileKind::Dir {
                let error = files.list(&path).unwrap_err();
                assert_eq!(
                    (error.kind, error.message.ends_with("not a directory")),
                    (ErrorKind::InvalidPath, true),
                    "{error}"
                );
            }
        }
        assert_eq!(
            kind(write(&files, &fixture.ws(""), b"new")),
            Err(ErrorKind::InvalidPath),
            "the workspace itself"
        );
        assert!(matches!(observed(&files, &fixture.ws("fifo")), Node::Fifo { .. } | Node::Special));
        assert_eq!(observed(&files, &fixture.ws("socket")), Node::Special);
        assert_eq!(fixture.names("ws"), ["dir", "fifo", "socket", "to-fifo"]);
    });
}

#[test]
fn devices_are_refused_without_blocking() {
    with_and_without_openat2(|| {
        let fixture = Fixture::open();
        let files = fixture.files();
        for device in ["/dev/zero", "/dev/null", "/dev/tty", "/dev/full"] {
            let path = Path::new(device);
            assert_eq!(files.kind(path).unwrap(), FileKind::Special, "{device}");
            assert_eq!(files.observe(path).unwrap(), Node::Special, "{device}");
            let error = files.open(path).unwrap_err();
            assert_eq!(
                (error.kind, error.message),
                (ErrorKind::InvalidPath, format!("{device} is a device, not a file"))
            );
            assert_eq!(kind(files.list(path)), Err(ErrorKind::InvalidPath), "{device}");
            assert_eq!(kind(write(&files, path, b"new")), Err(ErrorKind::InvalidPath), "{device}");
        }
        fixture.link("/dev/zero", "out/zero");
        assert_eq!(kind(files.open(&fixture.path("out/zero"))), Err(ErrorKind::InvalidPath));
    });
}

#[test]
fn walk_skips_special_files() {
    let fixture = Fixture::new();
    fixture.put("ws/dir/file", "1");
    fs::create_dir(fixture.ws(".git")).unwrap();
    for name in [".gitignore", ".ignore", "dir/.gitignore", "dir/.ignore", "pipe"] {
        fifo(&fixture.ws(name));
    }
    fixture.put("ws/endless/file", "1");
    fixture.link("/dev/zero", "ws/endless/.ignore");
    let found = std::sync::Mutex::new(Vec::new());
    let walk = WalkRequest { root: fixture.ws(""), hidden: true, ..WalkRequest::default() };
    fixture
        .files()
        .walk(&walk, &mut || {
            Box::new(|file| {
                found.lock().unwrap().push(file.path().to_owned());
                ControlFlow::Continue(())
            })
        })
        .unwrap();
    let mut found = found.into_inner().unwrap();
    found.sort();
    assert_eq!(found, [fixture.ws("dir/file"), fixture.ws("endless/file")]);
}

#[test]
fn file_as_a_path_component_is_reported() {
    with_and_without_openat2(|| {
        let fixture = Fixture::new();
        fixture.put("ws/file", "1");
        fixture.link("file", "ws/link");
        fixture.link("file/", "ws/slash");
        fixture.link("new/", "ws/new-slash");
        let files = fixture.files();
        for path in ["file/below", "link/below", "file/below/deep", "slash"] {
            let path = fixture.ws(path);
            assert_eq!(kind(files.open(&path)), Err(ErrorKind::FileNotFound), "{}", path.display());
            assert_eq!(
                kind(write(&files, &path, b"new")),
                Err(ErrorKind::FileNotFound),
                "{}",
                path.display()
            );
        }
        assert_eq!(kind(write(&files, &fixture.ws("new-slash"), b"new")), Err(ErrorKind::FileNotFound));
        assert_eq!(kind(files.list(&fixture.ws("none"))), Err(ErrorKind::FileNotFound));
        assert_eq!(fs::read(fixture.ws("file")).unwrap(), b"1");
        assert_eq!(fixture.names("ws"), ["file", "link", "new-slash", "slash"]);
    });
}

#[test]
fn names_may_have_any_bytes() {
    let fixture = Fixture::new();
    let files = fixture.files();
    let names: [&[u8]; 7] =
        [b"two\nlines", b"\xff\xfe", b" ", b"-rf", b"\x01\x1b[31m", b"a\\b", b".haft-mine.tmp"];
    for name in names {
        let path = fixture.ws("").join(OsStr::from_bytes(name));
        write(&files, &path, b"1").unwrap();
        write(&files, &path, b"2").unwrap();
        assert_eq!(read(&files, &path).unwrap(), b"2");
        assert!(matches!(observed(&files, &path), Node::File(_)));
    }
    let mut listed: Vec<OsString> =
        files.list(&fixture.ws("")).unwrap().into_iter().map(|entry| entry.name).collect();
    listed.sort();
    let mut expected: Vec<OsString> = names.iter().map(|name| OsStr::from_bytes(name).to_owned()).collect();
    expected.sort();
    assert_eq!(listed, expected);
}

#[test]
fn too_long_name_is_an_invalid_path() {
    let fixture = Fixture::new();
    let files = fixture.files();
    let most = fixture.ws(&"n".repeat(255));
    write(&files, &most, b"1").unwrap();
    assert_eq!(read(&files, &most).unwrap(), b"1");
    for path in [fixture.ws(&"n".repeat(256)), fixture.ws(&format!("new/{}", "n".repeat(300)))] {
        assert_eq!(kind(files.open(&path)), kind(files.kind(&path)));
        let open = kind(files.open(&path));
        assert!(matches!(open, Err(ErrorKind::InvalidPath | ErrorKind::FileNotFound)), "{open:?}");
        assert_eq!(kind(write(&files, &path, b"1")), Err(ErrorKind::InvalidPath));
    }
}

#[test]
fn three_hundred_nested_directories_work() {
    let fixture = Fixture::new();
    let path: PathBuf = fixture.ws("").join("d/".repeat(300)).join("file");
    let (files, log) = fixture.recorded();
    write(&files, &path, b"deep").unwrap();
    assert_eq!(read(&files, &path).unwrap(), b"deep");
    assert!(matches!(observed(&files, &path), Node::File(_)));
    assert_eq!(log.changes().len(), 301, "each directory is recorded");
}

#[test]
fn path_longer_than_path_max_works() {
    let fixture = Fixture::new();
    let name = "d".repeat(200);
    let mut held = openat(CWD, fixture.ws(""), rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
    let mut path = fixture.ws("");
    for _ in 0..30 {
        mkdirat(&held, &name, Mode::RWXU).unwrap();
        held = openat(&held, &name, rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
        path.push(&name);
    }
    let path = path.join("file");
    assert!(path.as_os_str().len() > 4096);
    let files = fixture.files();
    write(&files, &path, b"far").unwrap();
    assert_eq!(read(&files, &path).unwrap(), b"far");
    assert_eq!(files.kind(&path).unwrap(), FileKind::File);
}
