//! `read_file` and `list_files`.

use haft::{ErrorKind, Value, json};

use crate::fixture::runtime::fields;
use crate::loom::loom;

#[tokio::test]
async fn read_file_gives_path_contents_and_whether_it_is_all() {
    let loom = loom();
    let path = loom.file("src/a.txt", "grüße\n");
    std::os::unix::fs::symlink("src", loom.root().join("link")).unwrap();
    std::os::unix::fs::symlink("src/a.txt", loom.root().join("file")).unwrap();
    for spelled in ["src/a.txt", "./src/../src/a.txt", &path, "link/a.txt", "file"] {
        let read = loom.value("read_file", json!({"path": spelled})).await;
        assert_eq!(read, json!({"path": path, "contents": "grüße\n", "truncated": false}));
        assert_eq!(fields(&read), ["path", "contents", "truncated"]);
    }
}

#[tokio::test]
async fn read_file_reads_one_mebibyte_unless_told_otherwise() {
    let loom = loom();
    loom.file("exact", "x".repeat(1 << 20));
    loom.file("more", "x".repeat((1 << 20) + 1));
    let read = async |name: &str| loom.value("read_file", json!({"path": name})).await;
    assert_eq!(read("exact").await["truncated"], false);
    let more = read("more").await;
    assert_eq!((more["contents"].as_str().unwrap().len(), &more["truncated"]), (1 << 20, &json!(true)));
    let more = loom.value("read_file", json!({"path": "more", "max_bytes": 2 << 20})).await;
    assert_eq!(
        (more["contents"].as_str().unwrap().len(), &more["truncated"]),
        ((1 << 20) + 1, &json!(false))
    );
}

#[tokio::test]
async fn read_file_cuts_between_characters_and_shows_what_is_no_text() {
    let loom = loom();
    loom.file("a", "ab日本");
    for (most, contents) in
        [(1, "a"), (2, "ab"), (3, "ab\u{fffd}"), (4, "ab\u{fffd}"), (5, "ab日"), (0, ""), (-7, "")]
    {
        let read = loom.value("read_file", json!({"path": "a", "max_bytes": most})).await;
        assert_eq!((read["contents"].as_str(), &read["truncated"]), (Some(contents), &json!(true)), "{most}");
    }
    loom.file("b", b"\x7fELF\0\xff\0end");
    let read = loom.value("read_file", json!({"path": "b"})).await;
    assert_eq!(read["contents"], "\u{7f}ELF\0\u{fffd}\0end");
}

#[tokio::test]
async fn read_file_and_list_files_fail_with_the_documented_kinds() {
    let loom = loom();
    std::os::unix::fs::symlink("/etc", loom.root().join("link")).unwrap();
    loom.file("file", "");
    let kind = async |tool: &str, arguments: Value| {
        let (kind, text) = loom.fails(tool, arguments).await;
        assert!(text.starts_with(&format!("{}: ", kind.loom_name())), "{text}");
        kind
    };
    assert_eq!(kind("read_file", json!({"path": "none"})).await, ErrorKind::FileNotFound);
    assert_eq!(kind("list_files", json!({"root": "none"})).await, ErrorKind::FileNotFound);
    for path in ["/etc/passwd", "../../../etc/passwd", "link/passwd"] {
        let error = kind("read_file", json!({"path": path})).await;
        assert_eq!(error.loom_name(), "PathOutsideWorkspace", "{path}");
    }
    for path in ["/etc", "..", "link"] {
        let error = kind("list_files", json!({"root": path})).await;
        assert_eq!(error.loom_name(), "PathOutsideWorkspace", "{path}");
    }
    for arguments in [json!({}), json!({"path": 5}), json!({"path": "a", "limit": 1}), json!({"path": ""})] {
        assert_eq!(kind("read_file", arguments).await, ErrorKind::InvalidArguments);
    }
    assert_eq!(kind("no_such_tool", json!({})).await, ErrorKind::NotFound);
}

#[tokio::test]
async fn list_files_gives_the_entries_of_one_directory() {
    let loom = loom();
    loom.file("src/main.rs", "");
    loom.file("Cargo.toml", "");
    std::os::unix::fs::symlink("src", loom.root().join("link")).unwrap();
    let expected = json!({"entries": [
        {"path": loom.path("Cargo.toml"), "is_dir": false},
        {"path": loom.path("link"), "is_dir": false},
        {"path": loom.path("src"), "is_dir": true},
    ]});
    assert_eq!(loom.value("list_files", json!({})).await, expected);
    let inside = loom.value("list_files", json!({"root": "src"})).await;
    assert_eq!(inside, json!({"entries": [{"path": loom.path("src/main.rs"), "is_dir": false}]}));
}

#[tokio::test]
async fn list_files_stops_at_a_thousand_unless_told_otherwise() {
    let loom = loom();
    for n in 0..1_200 {
        loom.file(&format!("{n:04}"), "");
    }
    let count = async |arguments: Value| {
        let listed = loom.value("list_files", arguments).await;
        let entries = listed["entries"].as_array().unwrap().clone();
        assert_eq!(entries[0]["path"], loom.path("0000"), "the first by name");
        entries.len()
    };
    assert_eq!(count(json!({})).await, 1_000);
    assert_eq!(count(json!({"max_results": 5})).await, 5);
    assert_eq!(count(json!({"max_results": 5_000})).await, 1_200);
}
