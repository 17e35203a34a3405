//! What is no ordinary file gets a clear answer, never a hang.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use haft_tool::{ErrorKind, FileKind, Files, Node, WalkRequest};
use rustix::fs::{CWD, FileType, Mode, mkdirat, mknodat, openat};

use crate::common::{Stage, kind, observed, read, with_and_without_openat2, write};

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
}

#[test]
fn directories_fifos_and_sockets_are_no_files_and_never_block() {
    with_and_without_openat2(|| {
        let stage = Stage::new();
        fs::create_dir(stage.ws("dir")).unwrap();
        fifo(&stage.ws("fifo"));
        let _listener = UnixListener::bind(stage.ws("socket")).unwrap();
        stage.link("fifo", "ws/to-fifo");
        let files = stage.files();
        for (name, what) in [
            ("dir", FileKind::Dir),
            ("fifo", FileKind::Special),
            ("socket", FileKind::Special),
            ("to-fifo", FileKind::Special),
        ] {
            let path = stage.ws(name);
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
            kind(write(&files, &stage.ws(""), b"new")),
            Err(ErrorKind::InvalidPath),
            "the workspace itself"
        );
        assert_eq!(observed(&files, &stage.ws("fifo")), Node::Special);
        assert_eq!(observed(&files, &stage.ws("socket")), Node::Special);
        assert_eq!(stage.names("ws"), ["dir", "fifo", "socket", "to-fifo"]);
    });
}

#[test]
fn devices_are_no_files_and_never_block() {
    with_and_without_openat2(|| {
        let stage = Stage::open();
        let files = stage.files();
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
        stage.link("/dev/zero", "out/zero");
        assert_eq!(kind(files.open(&stage.path("out/zero"))), Err(ErrorKind::InvalidPath));
    });
}

#[test]
fn a_walk_passes_over_what_is_no_file_and_reads_no_rules_from_it() {
    let stage = Stage::new();
    stage.put("ws/dir/file", "1");
    fs::create_dir(stage.ws(".git")).unwrap();
    for name in [".gitignore", ".ignore", "dir/.gitignore", "dir/.ignore", "pipe"] {
        fifo(&stage.ws(name));
    }
    stage.put("ws/endless/file", "1");
    stage.link("/dev/zero", "ws/endless/.ignore");
    let found = std::sync::Mutex::new(Vec::new());
    let walk = WalkRequest { root: stage.ws(""), hidden: true, ..WalkRequest::default() };
    stage
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
    assert_eq!(found, [stage.ws("dir/file"), stage.ws("endless/file")]);
}

#[test]
fn a_part_of_the_path_that_is_a_file_is_told() {
    with_and_without_openat2(|| {
        let stage = Stage::new();
        stage.put("ws/file", "1");
        stage.link("file", "ws/link");
        stage.link("file/", "ws/slash");
        stage.link("new/", "ws/new-slash");
        let files = stage.files();
        for path in ["file/below", "link/below", "file/below/deep", "slash"] {
            let path = stage.ws(path);
            assert_eq!(kind(files.open(&path)), Err(ErrorKind::FileNotFound), "{}", path.display());
            assert_eq!(
                kind(write(&files, &path, b"new")),
                Err(ErrorKind::FileNotFound),
                "{}",
                path.display()
            );
        }
        assert_eq!(kind(write(&files, &stage.ws("new-slash"), b"new")), Err(ErrorKind::FileNotFound));
        assert_eq!(kind(files.list(&stage.ws("none"))), Err(ErrorKind::FileNotFound));
        assert_eq!(fs::read(stage.ws("file")).unwrap(), b"1");
        assert_eq!(stage.names("ws"), ["file", "link", "new-slash", "slash"]);
    });
}

#[test]
fn names_of_any_bytes_work() {
    let stage = Stage::new();
    let files = stage.files();
    let names: [&[u8]; 7] =
        [b"two\nlines", b"\xff\xfe", b" ", b"-rf", b"\x01\x1b[31m", b"a\\b", b".haft-mine.tmp"];
    for name in names {
        let path = stage.ws("").join(OsStr::from_bytes(name));
        write(&files, &path, b"1").unwrap();
        write(&files, &path, b"2").unwrap();
        assert_eq!(read(&files, &path).unwrap(), b"2");
        assert!(matches!(observed(&files, &path), Node::File(_)));
    }
    let mut listed: Vec<OsString> =
        files.list(&stage.ws("")).unwrap().into_iter().map(|entry| entry.name).collect();
    listed.sort();
    let mut expected: Vec<OsString> = names.iter().map(|name| OsStr::from_bytes(name).to_owned()).collect();
    expected.sort();
    assert_eq!(listed, expected);
}

#[test]
fn a_name_that_is_too_long_is_an_invalid_path() {
    let stage = Stage::new();
    let files = stage.files();
    let most = stage.ws(&"n".repeat(255));
    write(&files, &most, b"1").unwrap();
    assert_eq!(read(&files, &most).unwrap(), b"1");
    for path in [stage.ws(&"n".repeat(256)), stage.ws(&format!("new/{}", "n".repeat(300)))] {
        assert_eq!(kind(files.open(&path)), kind(files.kind(&path)));
        let open = kind(files.open(&path));
        assert!(matches!(open, Err(ErrorKind::InvalidPath | ErrorKind::FileNotFound)), "{open:?}");
        assert_eq!(kind(write(&files, &path, b"1")), Err(ErrorKind::InvalidPath));
    }
}

#[test]
fn three_hundred_nested_directories_are_just_directories() {
    let stage = Stage::new();
    let path: PathBuf = stage.ws("").join("d/".repeat(300)).join("file");
    let (files, journal) = stage.recorded();
    write(&files, &path, b"deep").unwrap();
    assert_eq!(read(&files, &path).unwrap(), b"deep");
    assert!(matches!(observed(&files, &path), Node::File(_)));
    assert_eq!(journal.changes().len(), 301, "each directory is told");
}

#[test]
fn a_path_longer_than_one_system_call_takes_is_read_and_written_all_the_same() {
    let stage = Stage::new();
    let name = "d".repeat(200);
    let mut held = openat(CWD, stage.ws(""), rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
    let mut path = stage.ws("");
    for _ in 0..30 {
        mkdirat(&held, &name, Mode::RWXU).unwrap();
        held = openat(&held, &name, rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
        path.push(&name);
    }
    let path = path.join("file");
    assert!(path.as_os_str().len() > 4096);
    let files = stage.files();
    write(&files, &path, b"far").unwrap();
    assert_eq!(read(&files, &path).unwrap(), b"far");
    assert_eq!(files.kind(&path).unwrap(), FileKind::File);
}
