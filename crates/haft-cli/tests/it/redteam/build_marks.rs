//! What runs when the user builds the project is not refused, but marked.

use haft::{CallOptions, Runtime, Value, json};

use crate::fixture::runtime::Directories;
use crate::fixture::sandbox::{SandboxFixture, User};

const MARK: &str = "hanges what runs on build";

#[test]
fn commands_that_change_what_runs_on_build_are_marked() {
    for namespaces in ["true", "false"] {
        let fixture = SandboxFixture::new(User::Current);
        fixture.file("work/package.json", "{}");
        let script = "mkdir -p .cargo .husky; echo x > Makefile; echo x > .cargo/config.toml; echo x > .npmrc; \
                      echo x > .yarnrc.yml; echo x > .husky/pre-commit; echo x > .pre-commit-config.yaml; \
                      echo '{\"scripts\":{}}' > package.json; echo x > other";
        let mut command = fixture.sandboxed(&[], script);
        let ran = fixture.run(command.env("HAFT_NAMESPACES", namespaces));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains(MARK) && ran.stderr.contains("and 2 more"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("Refused") && fixture.path("work/.npmrc").exists(), "{}", ran.stderr);
        for args in [&["log"][..], &["show", "1"]] {
            let shown = fixture.haft(args);
            assert!(shown.stdout.contains(MARK), "{args:?}: {}", shown.stdout);
        }
        let receipt: Value = serde_json::from_str(&fixture.haft(&["show", "1", "--json"]).stdout).unwrap();
        let marked: Vec<&str> =
            receipt["runs_on_build"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(marked.len(), 7, "{marked:?}");
        assert!(marked.contains(&"package.json") && marked.contains(&".cargo/config.toml"), "{marked:?}");
        let ran = fixture.inside("echo y > other; cat Makefile");
        assert!(!ran.stderr.contains(MARK), "{}", ran.stderr);
        let undone = fixture.haft(&["undo", "1", "--yes", "--force"]);
        assert_eq!(undone.code, 0, "{}", undone.stderr);
    }
}

#[test]
fn results_and_receipts_of_tools_are_marked() {
    let directories = Directories::new();
    let builder = Runtime::builder().workspace(directories.folder.path()).home(directories.home.path());
    let runtime = builder.dialect(haft::claude()).build().unwrap();
    let call = |tool: &str, arguments| {
        runtime.run_blocking(haft::Call::new("call_1", tool, arguments), CallOptions::default())
    };
    let bash = call("Bash", json!({"command": "echo x > Makefile"}));
    assert!(bash.output.as_text().contains(MARK), "{}", bash.output.as_text());
    assert_eq!(bash.receipt.runs_on_build, ["Makefile"]);
    let path = directories.folder.path().canonicalize().unwrap().join("sub/package.json");
    let write = call("Write", json!({"file_path": path, "content": "{}"}));
    assert!(!write.output.is_error(), "{}", write.output.as_text());
    assert_eq!(write.receipt.runs_on_build, ["sub/package.json"]);
    let other = call("Bash", json!({"command": "echo x > notes; mkdir d; mv notes d/"}));
    assert!(!other.output.as_text().contains(MARK) && other.receipt.runs_on_build.is_empty());
}

#[test]
fn b7_steps_of_a_stopped_rebase_are_marked() {
    for namespaces in ["true", "false"] {
        let fixture = SandboxFixture::new(User::Current);
        let made = fixture.unsandboxed(
            "git init -q . && for i in 1 2 3; do echo $i > f$i; git add . && git commit -qm $i; done",
        );
        assert_eq!(made.code, 0, "{}", made.stderr);
        let run = |script: &str| {
            let ran = fixture.run(fixture.sandboxed(&[], script).env("HAFT_NAMESPACES", namespaces));
            assert_eq!(ran.code, 0, "{script}: {}", ran.stderr);
            ran.stderr
        };
        let said = run("git rebase -q -x 'touch ran' HEAD~1 && rm ran");
        assert!(!said.contains(MARK) && !said.contains("Refused"), "it has ended: {said}");
        let said = run("GIT_SEQUENCE_EDITOR='sed -i 1s/^pick/edit/' git rebase -q -i HEAD~2; \
             echo 'exec touch evil' >> .git/rebase-merge/git-rebase-todo");
        assert!(said.contains(MARK) && said.contains("rebase-merge/git-rebase-todo"), "{said}");
    }
}
