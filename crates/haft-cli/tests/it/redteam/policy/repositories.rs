//! E12: file tools do not complete a repository whose configuration runs programs.

use haft::json;

use super::{call, denied};
use crate::fixture::runtime::Directories;

/// The files that make a directory a repository; git needs no configuration.
const FILES: [(&str, &str); 3] =
    [("HEAD", "ref: refs/heads/main\n"), ("objects/info/packs", "\n"), ("refs/heads/x", "\n")];

#[test]
fn e12_write_tool_alone_does_not_complete_a_bare_repository() {
    let directories = Directories::new();
    let haft = directories.builder().build().unwrap();
    for first in 0..FILES.len() {
        for step in [1, 2] {
            let folder = directories.path(&format!("{first}-{step}"));
            let order: Vec<_> = (0..FILES.len()).map(|at| FILES[(first + at * step) % FILES.len()]).collect();
            for (name, content) in &order[..2] {
                let written =
                    call(&haft, "Write", json!({"file_path": folder.join(name), "content": content}));
                assert!(!written.output.is_error(), "{}", written.output.as_text());
            }
            let (name, content) = order[2];
            let last = json!({"file_path": folder.join(name), "content": content});
            assert!(denied(&haft, "Write", last.clone()).contains("git directory"), "{name}");
            assert!(!folder.join(name).exists());
            let allowed = directories.builder().allow_write(&folder).build().unwrap();
            assert!(!call(&allowed, "Write", last).output.is_error());
            for name in ["hooks/post-commit", "config"] {
                denied(&haft, "Write", json!({"file_path": folder.join(name), "content": "x"}));
            }
        }
    }
}

#[test]
fn e12_a_symbolic_head_and_a_common_directory_count() {
    let directories = Directories::new();
    let haft = directories.builder().build().unwrap();
    std::fs::create_dir_all(directories.path("a/objects")).unwrap();
    std::fs::create_dir_all(directories.path("a/refs")).unwrap();
    std::os::unix::fs::symlink("refs/heads/main", directories.path("a/HEAD")).unwrap();
    denied(&haft, "Write", json!({"file_path": directories.path("a/config"), "content": "x"}));
    std::fs::create_dir(directories.path("b")).unwrap();
    std::fs::write(directories.path("b/HEAD"), "ref: refs/heads/main\n").unwrap();
    denied(&haft, "Write", json!({"file_path": directories.path("b/commondir"), "content": "../a\n"}));
}
