//! `read_file`, `write_file`, `edit_file` and `list_directory`.

use haft::{ErrorKind, Value, json};

use crate::clawft::clawft;

#[tokio::test]
async fn read_file_gives_the_content() {
    let clawft = clawft();
    clawft.file("src/main.rs", "fn main() {}\n");
    assert_eq!(
        clawft.value("read_file", json!({"path": "src/main.rs"})).await,
        json!({"content": "fn main() {}\n"})
    );
}

#[tokio::test]
async fn write_file_makes_directories_and_counts_bytes() {
    let clawft = clawft();
    for content in ["[server]\nport = 8080\n", "ä", ""] {
        let wrote = clawft.value("write_file", json!({"path": "config/a.toml", "content": content})).await;
        let message = format!("Successfully wrote {} bytes to config/a.toml", content.len());
        assert_eq!(wrote, json!({"message": message}));
        assert_eq!(clawft.read("config/a.toml"), content);
    }
}

#[tokio::test]
async fn edit_file_needs_exactly_one_occurrence() {
    let clawft = clawft();
    clawft.file("a.rs", "one two two");
    let edit = |old: &str, new: &str| json!({"path": "a.rs", "old_text": old, "new_text": new});
    let done = clawft.value("edit_file", edit("one", "1")).await;
    assert_eq!(done, json!({"message": "Successfully edited a.rs"}));
    assert_eq!(clawft.read("a.rs"), "1 two two");
    let (kind, said) = clawft.fails("edit_file", edit("two", "2")).await;
    assert_eq!(kind.clawft_name(), "InvalidArgs");
    assert!(said.contains("old_text was found 2 times in") && !said.contains("replace_all"), "{said}");
    for old in ["three", ""] {
        assert_eq!(clawft.fails("edit_file", edit(old, "3")).await.0, ErrorKind::InvalidArguments, "{old}");
    }
    assert_eq!(clawft.read("a.rs"), "1 two two");
    let missing = json!({"path": "b.rs", "old_text": "a", "new_text": "b"});
    assert_eq!(clawft.fails("edit_file", missing).await.0, ErrorKind::FileNotFound);
}

#[tokio::test]
async fn list_directory_is_sorted_by_name_and_tells_sizes() {
    let clawft = clawft();
    clawft.file("src/tests/deep", "x");
    clawft.file("src/main.rs", "x".repeat(1_234));
    clawft.file("src/B", "");
    let listed = clawft.value("list_directory", json!({"path": "src"})).await;
    let entries = listed["entries"].as_array().unwrap();
    assert_eq!(entries[0], json!({"name": "B", "is_dir": false, "size": 0}));
    assert_eq!(entries[1], json!({"name": "main.rs", "is_dir": false, "size": 1_234}));
    assert_eq!((&entries[2]["name"], &entries[2]["is_dir"]), (&json!("tests"), &json!(true)));
    assert_eq!(entries.len(), 3);
}

#[tokio::test]
async fn no_file_tool_leaves_the_workspace() {
    let clawft = clawft();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), clawft.root().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("new"), clawft.root().join("dangling")).unwrap();
    let at = |path: &str| outside.path().join(path).to_str().unwrap().to_owned();
    let calls: Vec<(&str, Value)> = vec![
        ("read_file", json!({"path": "../../../etc/passwd"})),
        ("read_file", json!({"path": at("secret")})),
        ("read_file", json!({"path": "link/secret"})),
        ("write_file", json!({"path": at("deep/er/new"), "content": "x"})),
        ("write_file", json!({"path": "link/new", "content": "x"})),
        ("write_file", json!({"path": "dangling", "content": "x"})),
        ("edit_file", json!({"path": "link/secret", "old_text": "x", "new_text": "y"})),
        ("list_directory", json!({"path": ".."})),
        ("list_directory", json!({"path": "link"})),
    ];
    for (tool, arguments) in calls {
        let (kind, said) = clawft.fails(tool, arguments.clone()).await;
        assert_eq!(kind.clawft_name(), "InvalidPath", "{tool} {arguments}: {said}");
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "x");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn missing_files_and_wrong_arguments_have_their_kinds() {
    let clawft = clawft();
    for tool in ["read_file", "list_directory"] {
        assert_eq!(clawft.fails(tool, json!({"path": "none"})).await.0.clawft_name(), "FileNotFound");
        assert_eq!(clawft.fails(tool, json!({})).await.0.clawft_name(), "InvalidArgs");
    }
    assert_eq!(clawft.fails("write_file", json!({"path": "a"})).await.0.clawft_name(), "InvalidArgs");
    assert_eq!(clawft.fails("no_such_tool", json!({})).await.0.clawft_name(), "NotFound");
}
