//! Named pipes where Haft expects files: nothing waits for a writer that never comes.

use super::guards::in_every_mode;

/// Each leaves pipes under names that Haft or git read.
const PLANTED: &[&str] = &[
    "mkfifo .git",
    "mkdir sub; mkfifo sub/.git",
    "git init -q r; rm r/.git/config; mkfifo r/.git/config r/.git/commondir r/.git/config.worktree",
    "git init -q r; rm r/.git/HEAD; mkfifo r/.git/HEAD r/.git/objects/pack/pack-1.idx",
    "mkfifo .gitignore .ignore .rgignore; mkdir sub; mkfifo sub/.gitignore",
    "mkdir .vscode; mkfifo .vscode/tasks.json .envrc .mcp.json CLAUDE.md",
];

#[test]
fn f1_pipes_under_names_that_are_read_do_not_block_any_call() {
    for script in PLANTED {
        in_every_mode(|space| {
            space.run(script);
            let ran = space.run("echo text > file");
            assert_eq!(ran.code, 0, "{script}: {}", ran.stderr);
            let file = space.fixture.work().join("file").display().to_string();
            let written = format!("{file}2");
            for arguments in [
                &["call", "Write", &format!("file_path={written}"), "content=x"][..],
                &["call", "Grep", "pattern=text"],
                &["call", "Glob", "pattern=**/*"],
                &["log"],
                &["undo", "--yes"],
                &["doctor"],
            ] {
                let ran = space.fixture.haft(arguments);
                assert!(ran.code == 0 || arguments == ["doctor"], "{script}: {arguments:?}: {}", ran.stderr);
            }
        });
    }
}
