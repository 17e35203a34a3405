//! The statements of the tool registry specification (seed 003, sections 3 to 9) for the tools that exist, one test each.

use haft::{CallResult, Content, ErrorKind, Runtime, ToolError, Value, json};
use tempfile::TempDir;

struct LocalFixture {
    folder: TempDir,
    _home: TempDir,
    haft: Runtime,
}

impl LocalFixture {
    fn new() -> Self {
        let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let builder = Runtime::builder().workspace(folder.path()).home(home.path()).dialect(haft::claude());
        let haft = builder.allow("Bash", "test").build().unwrap();
        Self { folder, _home: home, haft }
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    async fn call(&self, tool: &str, arguments: Value) -> CallResult {
        self.haft.call(tool, arguments).await
    }

    async fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).await.output.as_text()
    }

    async fn fails(&self, tool: &str, arguments: Value) -> (ErrorKind, String) {
        let output = self.call(tool, arguments).await.output;
        (output.error_kind.unwrap(), output.as_text())
    }
}

#[tokio::test]
async fn section_3_1_each_tool_has_name_description_schema_and_side_effect() {
    let fixture = LocalFixture::new();
    let kinds: Vec<String> = fixture
        .haft
        .definitions()
        .iter()
        .map(|tool| {
            assert!(!tool.description.is_empty() && tool.input_schema["type"] == "object", "{}", tool.name);
            format!("{} {}", tool.name, json!(tool.side_effect).as_str().unwrap())
        })
        .collect();
    let expected = [
        "Read read_only",
        "Write mutating",
        "Edit mutating",
        "NotebookEdit mutating",
        "Glob read_only",
        "Grep read_only",
        "Bash mutating",
        "TaskOutput read_only",
        "TaskStop mutating",
        "TodoWrite mutating",
        "WebFetch network",
        "WebSearch network",
        "Agent spawns",
        "AskUserQuestion blocking",
        "ExitPlanMode blocking",
        "Config mutating",
        "ListMcpResources read_only",
        "ReadMcpResource read_only",
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn section_4_1_bash_captures_both_streams_combined_and_tells_the_exit_code() {
    let fixture = LocalFixture::new();
    let said = fixture
        .text("Bash", json!({"command": "echo out; echo err >&2; echo out again", "description": "talk"}))
        .await;
    assert_eq!(said, "out\nerr\nout again\n");
    let failed = fixture.call("Bash", json!({"command": "echo x; exit 7"})).await;
    assert_eq!(failed.output.as_text(), "x\nExit code 7");
    assert_eq!(failed.output.structured.unwrap()["exitCode"], 7);
    assert_eq!(fixture.text("Bash", json!({"command": "true"})).await, "(no output)");
    assert_eq!(
        fixture.text("Bash", json!({"command": "cat; pwd"})).await,
        format!("{}\n", fixture.haft.workspace().display())
    );
}

#[tokio::test]
async fn section_4_1_bash_keeps_its_working_directory_inside_the_workspace() {
    let fixture = LocalFixture::new();
    std::fs::create_dir_all(fixture.path("sub/deep dir")).unwrap();
    let workspace = fixture.haft.workspace().to_str().unwrap().to_owned();
    let run = |command: &str| {
        let arguments = json!({"command": command});
        async { fixture.call("Bash", arguments).await.output.as_text() }
    };
    assert_eq!(run("cd sub && echo there").await, "there\n");
    assert_eq!(
        run("pwd; cd 'deep dir'; echo to file > log; exec > log2").await,
        format!("{workspace}/sub\n")
    );
    assert_eq!(
        run("set -x; pwd").await,
        format!("+ pwd\n{workspace}/sub/deep dir\n"),
        "no trace of the trap"
    );
    assert_eq!(fixture.text("Bash", json!({"command": "cd ..; exit 3"})).await, "Exit code 3");
    assert_eq!(run("pwd; cat log log2").await, format!("{workspace}/sub/deep dir\nto file\n"), "it failed");
    let started =
        fixture.call("Bash", json!({"command": "pwd; cd /", "run_in_background": true})).await.output;
    let id = started.structured.unwrap()["backgroundTaskId"].as_str().unwrap().to_owned();
    let task = fixture.text("TaskOutput", json!({"task_id": id, "timeout": 600_000})).await;
    assert_eq!(task, format!("{workspace}/sub/deep dir\n(completed)"));
    assert_eq!(fixture.text("Bash", json!({"command": "cd /tmp; exit 3"})).await, "Exit code 3", "kept");
    assert_eq!(run("cd /usr").await, format!("Shell cwd was reset to {workspace}"));
    assert_eq!(run("pwd; (cd sub)").await, format!("{workspace}\n"));
    let error = run("echo 'unclosed").await;
    assert!(error.contains("unexpected EOF") && error.ends_with("Exit code 2"), "{error}");
    let missing = run("pwd\nnosuchprogram").await;
    assert!(missing.starts_with(&workspace) && missing.contains("line 2: nosuchprogram"), "{missing}");
}

#[tokio::test]
async fn section_4_1_bash_enforces_its_timeout_of_at_most_600000_ms() {
    let fixture = LocalFixture::new();
    let (kind, said) = fixture.fails("Bash", json!({"command": "true", "timeout": 600_001})).await;
    assert_eq!(
        (kind, said.as_str()),
        (ErrorKind::InvalidArguments, "Bash: timeout: expected at most 600000, got 600001")
    );
    assert_eq!(
        fixture.fails("Bash", json!({"command": "echo kept; sleep 600", "timeout": 100})).await.0,
        ErrorKind::Timeout
    );
    assert_eq!(fixture.fails("Bash", json!({"command": " "})).await.0, ErrorKind::InvalidArguments);
}

#[tokio::test]
async fn section_4_1_bash_output_beyond_the_limit_is_cut_in_the_middle() {
    let fixture = LocalFixture::new();
    let said = fixture.text("Bash", json!({"command": "seq 1 100000"})).await;
    assert!(said.starts_with("1\n2\n") && said.ends_with("99999\n100000\n"), "head and tail");
    assert!(said.contains("of 588895 characters not shown (588895 bytes in all)") && said.len() < 31_000);
}

#[tokio::test]
async fn section_9_bash_runs_in_the_background_under_a_task_id() {
    let fixture = LocalFixture::new();
    let arguments = json!({"command": "echo out; exit 3", "run_in_background": true, "description": "talk"});
    let started = fixture.call("Bash", arguments).await.output;
    let id = started.structured.as_ref().unwrap()["backgroundTaskId"].as_str().unwrap();
    assert_eq!(started.as_text(), format!("Command running in background with ID: {id}"));
    let read =
        fixture.call("TaskOutput", json!({"task_id": id, "block": true, "timeout": 600_000})).await.output;
    assert_eq!(read.as_text(), "out\nExit code 3");
    let task = &read.structured.as_ref().unwrap()["task"];
    assert_eq!(
        (&task["task_id"], &task["status"], &task["exitCode"], &task["description"]),
        (&json!(id), &json!("failed"), &json!(3), &json!("talk"))
    );
    let stopped = fixture.text("TaskStop", json!({"task_id": id})).await;
    assert_eq!(stopped, format!("Task {id} had already ended (failed)"));
}

#[tokio::test]
async fn section_4_2_read_gives_numbered_lines_with_offset_and_limit() {
    let fixture = LocalFixture::new();
    let path = fixture.file("a.txt", "one\r\ntwo\nthree");
    assert_eq!(
        fixture.text("Read", json!({"file_path": path})).await,
        "     1\tone\n     2\ttwo\n     3\tthree\n"
    );
    let part = fixture.text("Read", json!({"file_path": path, "offset": 2, "limit": 1})).await;
    assert_eq!(part, "     2\ttwo\n(lines 2 to 2 of 3; read on with offset 3)\n");
    assert_eq!(
        fixture.text("Read", json!({"file_path": path, "offset": 9})).await,
        "(the file has only 3 lines)\n"
    );
    let empty = fixture.file("empty", "");
    assert_eq!(fixture.text("Read", json!({"file_path": empty})).await, "(the file is empty)\n");
    let long = fixture.file("long", "ä".repeat(2_001));
    let said = fixture.text("Read", json!({"file_path": long})).await;
    assert!(said.ends_with("ä... [line cut: 2001 characters]\n"), "{}", &said[said.len() - 60..]);
    let many = fixture.file("many", "x\n".repeat(2_500));
    let said = fixture.text("Read", json!({"file_path": many})).await;
    assert!(said.ends_with("  2000\tx\n(lines 1 to 2000 of 2500; read on with offset 2001)\n"));
}

#[tokio::test]
async fn section_4_2_read_shows_pictures_and_names_what_it_cannot_show() {
    let fixture = LocalFixture::new();
    let png = fixture.file("a.png", b"\x89PNG\r\n\x1a\nrest");
    let seen = fixture.call("Read", json!({"file_path": png})).await.output;
    assert_eq!(
        seen.content,
        [Content::Image { media_type: "image/png".into(), data: "iVBORw0KGgpyZXN0".into() }]
    );
    let pdf = fixture.file("a.pdf", "%PDF-1.7\n");
    assert!(
        fixture.fails("Read", json!({"file_path": pdf, "pages": "1-5"})).await.1.contains("is a broken PDF")
    );
    let text = fixture.file("a.txt", "x");
    assert_eq!(
        fixture.fails("Read", json!({"file_path": text, "pages": "1"})).await.0,
        ErrorKind::InvalidArguments
    );
    let binary = fixture.file("a.bin", b"\x7fELF\0\0\0\x01\x02");
    assert!(
        fixture
            .fails("Read", json!({"file_path": binary}))
            .await
            .1
            .contains("is a binary file (9 bytes), not text")
    );
    let latin = fixture.file("latin.txt", b"Gr\xfc\xdfe aus K\xf6ln, sch\xf6ne Gr\xfc\xdfe\n");
    assert_eq!(
        fixture.text("Read", json!({"file_path": latin})).await,
        "     1\tGrüße aus Köln, schöne Grüße\n"
    );
}

#[tokio::test]
async fn section_4_2_read_helps_when_the_path_is_wrong() {
    let fixture = LocalFixture::new();
    let _ = fixture.file("settings.toml", "");
    let (kind, said) = fixture.fails("Read", json!({"file_path": fixture.path("setings.toml")})).await;
    assert_eq!(kind, ErrorKind::FileNotFound);
    assert!(said.ends_with("does not exist; its directory has settings.toml"), "{said}");
    let (_, said) = fixture.fails("Read", json!({"file_path": fixture.path("")})).await;
    assert!(said.contains("is a directory, not a file; list it with Glob"), "{said}");
    assert_eq!(fixture.fails("Read", json!({"file_path": "/dev/zero"})).await.0, ErrorKind::InvalidPath);
}

#[tokio::test]
async fn section_4_3_write_makes_parent_directories_and_says_how_many_lines() {
    let fixture = LocalFixture::new();
    let path = fixture.path("a/b/c.txt");
    let made = fixture.text("Write", json!({"file_path": path, "content": "1\n2\n"})).await;
    assert_eq!(made, format!("Created {path} (2 lines, 4 bytes)"));
    let again = fixture.text("Write", json!({"file_path": path, "content": ""})).await;
    assert_eq!(again, format!("Wrote {path} (0 lines, 0 bytes)"), "content may be empty");
    assert_eq!(
        fixture.fails("Write", json!({"file_path": path})).await.1,
        "Write: content: required but missing (string)"
    );
}

#[tokio::test]
async fn section_4_4_edit_needs_exactly_one_match_unless_replace_all() {
    let fixture = LocalFixture::new();
    let path = fixture.file("a.txt", "one\ntwo\none\n");
    let edit = |old: &str, new: &str, all: bool| json!({"file_path": path, "old_string": old, "new_string": new, "replace_all": all});
    let (kind, said) = fixture.fails("Edit", edit("one", "1", false)).await;
    assert_eq!(kind, ErrorKind::TargetNotFound);
    assert!(said.contains("found 2 times") && said.contains("at lines 1, 3"), "{said}");
    let by_default = json!({"file_path": path, "old_string": "one", "new_string": "1"});
    assert_eq!(
        fixture.fails("Edit", by_default).await.0,
        ErrorKind::TargetNotFound,
        "replace_all is false by default"
    );
    let (kind, said) = fixture.fails("Edit", edit("Two", "2", false)).await;
    assert_eq!(kind, ErrorKind::TargetNotFound);
    assert!(said.contains("The nearest text is at line 2 and differs in upper and lower case"), "{said}");
    let said = fixture.text("Edit", edit("two", "2", false)).await;
    assert_eq!(said, format!("Edited {path}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n one\n"), "a diff snippet");
    assert!(
        fixture
            .text("Edit", edit("one\n", "", true))
            .await
            .starts_with(&format!("Edited {path} (2 replacements)\n"))
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "2\n", "new_string may be empty");
    assert_eq!(
        fixture
            .fails("Edit", json!({"file_path": fixture.path("none"), "old_string": "a", "new_string": "b"}))
            .await
            .0,
        ErrorKind::FileNotFound
    );
}

#[tokio::test]
async fn section_4_5_glob_finds_recursively_newest_first_and_leaves_out_what_git_ignores() {
    let fixture = LocalFixture::new();
    std::fs::create_dir(fixture.folder.path().join(".git")).unwrap();
    let _ = fixture.file(".gitignore", "*.log\n");
    let mut age = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000);
    for name in ["src/b.rs", "src/deep/a.rs", "top.rs", "x.log", ".hidden.rs", ".git/hook.rs"] {
        let path = fixture.file(name, "");
        std::fs::File::options().write(true).open(path).unwrap().set_modified(age).unwrap();
        age += std::time::Duration::from_secs(1);
    }
    let found = fixture.text("Glob", json!({"pattern": "**/*.{rs,log}"})).await;
    let expected: String = [".hidden.rs", "top.rs", "src/deep/a.rs", "src/b.rs"]
        .map(|name| format!("{}\n", fixture.path(name)))
        .concat();
    assert_eq!(found, expected);
    let top: String = [".hidden.rs", "top.rs"].map(|name| format!("{}\n", fixture.path(name))).concat();
    assert_eq!(fixture.text("Glob", json!({"pattern": "*.rs"})).await, top);
    assert_eq!(
        fixture.text("Glob", json!({"pattern": "*.rs", "path": fixture.path("src")})).await,
        format!("{}\n", fixture.path("src/b.rs"))
    );
    assert_eq!(fixture.text("Glob", json!({"pattern": "*.none"})).await, "No files found\n");
    assert_eq!(
        fixture.fails("Glob", json!({"pattern": "[", "path": fixture.path("src")})).await.0,
        ErrorKind::InvalidArguments
    );
}

#[tokio::test]
async fn section_4_6_grep_has_its_modes_and_refuses_others() {
    let fixture = LocalFixture::new();
    let _ = fixture.file("a.txt", "x needle\ny\nneedle needle\n");
    let _ = fixture.file(".hidden/b.c", "needle\n");
    let _ = fixture.file(".git/config", "needle\n");
    let _ = fixture.file("c.h", "needle\n");
    let mut age = std::time::SystemTime::UNIX_EPOCH;
    for name in ["a.txt", ".hidden/b.c", "c.h"] {
        age += std::time::Duration::from_secs(1);
        let file = std::fs::File::options().write(true).open(fixture.path(name)).unwrap();
        file.set_modified(age).unwrap();
    }
    let files = fixture.text("Grep", json!({"pattern": "needle"})).await;
    assert_eq!(files, "Found 3 files\nc.h\n.hidden/b.c\na.txt\n", "newest first, hidden files but not .git");
    let files = fixture.text("Grep", json!({"pattern": "needle", "glob": "*.c,*.h", "head_limit": 1})).await;
    assert_eq!(files, "Found 1 file limit: 1\nc.h\n", "a list of globs");
    let lines =
        fixture.text("Grep", json!({"pattern": "needle", "output_mode": "content", "glob": "*.txt"})).await;
    assert_eq!(lines, "a.txt:1:x needle\na.txt:3:needle needle\n", "line numbers by default");
    let counts =
        fixture.text("Grep", json!({"pattern": "needle", "output_mode": "count", "glob": "*.{txt,h}"})).await;
    assert_eq!(counts, "a.txt:2\nc.h:1\n\nFound 3 total occurrences across 2 files.\n");
    assert_eq!(fixture.text("Grep", json!({"pattern": "nothing"})).await, "No files found\n");
    let none = fixture.text("Grep", json!({"pattern": "nothing", "output_mode": "content"})).await;
    assert_eq!(none, "No matches found\n");
    let (kind, said) = fixture.fails("Grep", json!({"pattern": "x", "output_mode": "lines"})).await;
    assert_eq!(kind, ErrorKind::InvalidArguments);
    assert!(said.contains("expected one of \"content\", \"files_with_matches\", \"count\""), "{said}");
    assert_eq!(fixture.fails("Grep", json!({"pattern": "("})).await.0, ErrorKind::InvalidArguments);
    assert_eq!(
        fixture.fails("Grep", json!({"pattern": "x", "type": "klingon"})).await.0,
        ErrorKind::InvalidArguments
    );
}

#[tokio::test]
async fn section_6_an_error_can_be_said_in_text_where_the_wire_has_no_flag() {
    let error = ToolError::new(ErrorKind::FileNotFound, "file not found: /nonexistent/path");
    assert_eq!(error.as_text(), "Error: file not found: /nonexistent/path");
}

#[tokio::test]
async fn section_8_inputs_are_validated_before_anything_runs() {
    let fixture = LocalFixture::new();
    let path = fixture.file("a.txt", "x");
    for (tool, arguments) in [
        ("Read", json!({"file_path": "a.txt"})),
        ("Write", json!({"file_path": "./a.txt", "content": ""})),
        ("Edit", json!({"file_path": "a.txt", "old_string": "x", "new_string": "y"})),
        ("Glob", json!({"pattern": "*", "path": "src"})),
        ("Grep", json!({"pattern": "x", "path": "src"})),
        ("Edit", json!({"file_path": path, "old_string": "x", "new_string": "x"})),
        ("Edit", json!({"file_path": path, "old_string": "", "new_string": "x"})),
    ] {
        assert_eq!(
            fixture.fails(tool, arguments.clone()).await.0,
            ErrorKind::InvalidArguments,
            "{tool} {arguments}"
        );
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), "x");
}
