//! E3: file tools judge what a path leads to.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::{
    Asker, Behavior, Builder, Call, CallOptions, Cancel, ErrorKind, PermissionAnswer, Question, Runtime,
    Value, json,
};
use haft_compat::hooks::{HookEvent, HookInput, HookOutcome, HookPermissionAnswer};
use haft_runtime::Hooks;

use super::{call, denied, dialects, reads, writes};
use crate::fixture::runtime::Directories;

/// A workspace with guarded files, and links to them: to the file, to its directory, by `..` and twice.
fn planted() -> Directories {
    let directories = Directories::new();
    for folder in [".git/hooks", ".vscode", "deep/er"] {
        std::fs::create_dir_all(directories.path(folder)).unwrap();
    }
    for file in [".git/config", ".git/hooks/pre-commit", ".vscode/tasks.json", ".mcp.json", "haft.toml"] {
        std::fs::write(directories.path(file), "needle\n").unwrap();
    }
    for (target, link) in [
        (".git", "g"),
        ("g", "twice"),
        (".git/config", "c"),
        (".vscode", "v"),
        (".mcp.json", "m"),
        ("../../.git", "deep/er/up"),
        ("haft.toml", "settings"),
        (".git/hooks/new", "dangling"),
    ] {
        symlink(target, directories.path(link)).unwrap();
    }
    symlink(directories.folder.path().canonicalize().unwrap().join(".git"), directories.path("absolute"))
        .unwrap();
    directories
}

const BY_LINK: [&str; 10] = [
    "g/config",
    "g/hooks/pre-commit",
    "twice/config",
    "c",
    "v/tasks.json",
    "m",
    "deep/er/up/config",
    "absolute/config",
    "settings",
    "dangling",
];

#[test]
fn e3_guarded_files_are_not_written_through_links() {
    let directories = planted();
    for (name, builder) in dialects(&directories) {
        let haft = builder.build().unwrap();
        for link in BY_LINK {
            for (tool, arguments) in writes(name, &directories.path(link)) {
                let said = denied(&haft, tool, arguments);
                assert!(said.contains("protected"), "{name} {link}: {said}");
            }
        }
    }
    for file in [".git/config", ".git/hooks/pre-commit", ".vscode/tasks.json", ".mcp.json", "haft.toml"] {
        assert_eq!(std::fs::read_to_string(directories.path(file)).unwrap(), "needle\n", "{file}");
    }
    assert!(!directories.path(".git/hooks/new").exists());
}

#[test]
fn e3_names_are_guarded_in_any_case() {
    let directories = Directories::new();
    let haft = directories.builder().build().unwrap();
    for path in [".GIT/config", ".Git/Hooks/x", ".VSCode/tasks.json", ".MCP.json", ".Claude/settings.json"] {
        denied(&haft, "Write", json!({"file_path": directories.path(path), "content": "x"}));
    }
}

#[test]
fn e3_a_rule_names_what_is_written_and_not_the_link() {
    let directories = planted();
    let by_link = directories.builder().allow("Edit(g/**)", "test").build().unwrap();
    let write = json!({"file_path": directories.path("g/config"), "content": "new\n"});
    denied(&by_link, "Write", write.clone());
    let by_target = directories.builder().allow("Edit(.git/config)", "test").build().unwrap();
    assert!(!call(&by_target, "Write", write).output.is_error());
    assert_eq!(std::fs::read_to_string(directories.path(".git/config")).unwrap(), "new\n");
}

/// Redirects a link, then allows the call. As a hook it runs after the decision, as an asker also before the last check.
struct SwapsThenAllows {
    link: PathBuf,
    target: &'static str,
}

impl SwapsThenAllows {
    fn swap(&self) {
        std::fs::remove_file(&self.link).unwrap();
        symlink(self.target, &self.link).unwrap();
    }
}

impl Hooks for SwapsThenAllows {
    fn has(&self, event: &HookEvent) -> bool {
        *event == HookEvent::PermissionRequest
    }

    fn run(&self, _runtime: &Runtime, _input: &HookInput, _cancel: &Cancel) -> HookOutcome {
        self.swap();
        let answer = HookPermissionAnswer::Allow { updated_input: None, updated_permissions: Vec::new() };
        let mut outcome = HookOutcome::default();
        outcome.permission_answer = Some(answer);
        outcome
    }
}

impl Asker for SwapsThenAllows {
    fn ask(&self, _question: &Question, _cancel: &Cancel) -> PermissionAnswer {
        self.swap();
        PermissionAnswer::Allow { by: "the test".to_owned() }
    }
}

/// Makes a call through the link `swapped`, which leads to `ordinary` when it is judged and to `target` afterwards. It must be
/// denied; returns its text.
#[track_caller]
fn swapped(builder: Builder, directories: &Directories, call: (&str, Value), target: &'static str) -> String {
    let (link, (tool, arguments)) = (directories.path("swapped"), call);
    let _ = std::fs::remove_file(&link);
    symlink("ordinary", &link).unwrap();
    let haft = builder.rule(Behavior::Ask, tool, "test").hooks(Arc::new(SwapsThenAllows { link, target }));
    let haft = haft.build().unwrap();
    let output = haft.run_blocking(Call::new("call_1", tool, arguments), CallOptions::default()).output;
    assert_eq!(output.error_kind, Some(ErrorKind::PermissionDenied), "{tool}: {}", output.as_text());
    output.as_text()
}

#[test]
fn e3_what_a_person_allowed_is_not_done_to_another_file() {
    let directories = planted();
    let link = directories.path("file");
    std::fs::write(directories.path("other"), "precious\n").unwrap();
    for (at, call) in writes("claude", &link).into_iter().enumerate() {
        let _ = std::fs::remove_file(&link);
        std::fs::write(&link, "needle\n").unwrap();
        let haft = directories.builder().rule(Behavior::Ask, call.0, "test").build().unwrap();
        let asker: Arc<dyn Asker> = Arc::new(SwapsThenAllows { link: link.clone(), target: "other" });
        let options = CallOptions { asker: Some(asker), ..CallOptions::default() };
        let output = haft.run_blocking(Call::new(format!("call_{at}"), call.0, call.1), options).output;
        assert!(output.as_text().contains("no longer what was shown"), "{}: {}", call.0, output.as_text());
    }
    assert_eq!(std::fs::read_to_string(directories.path("other")).unwrap(), "precious\n");
}

#[test]
fn e3_a_link_that_is_swapped_after_the_decision_leads_to_nothing_guarded_or_secret() {
    let directories = planted();
    std::fs::create_dir_all(directories.path("keys")).unwrap();
    std::fs::write(directories.path("keys/id_rsa"), "needle\n").unwrap();
    std::fs::write(directories.path("ordinary"), "needle\n").unwrap();
    let link = directories.path("swapped");
    for call in writes("claude", &link) {
        assert!(swapped(directories.builder(), &directories, call, ".git/config").contains("protected"));
    }
    for call in reads("claude", &link) {
        let said = swapped(directories.builder(), &directories, call, "keys/id_rsa");
        assert!(said.contains("may hold secrets"), "{said}");
    }
    for file in [".git/config", "keys/id_rsa"] {
        assert_eq!(std::fs::read_to_string(directories.path(file)).unwrap(), "needle\n", "{file}");
    }
}

#[test]
fn e3_a_path_that_a_rule_denies_is_not_reached_by_a_swapped_link() {
    let directories = planted();
    std::fs::create_dir(directories.path("private")).unwrap();
    std::fs::write(directories.path("private/a"), "needle\n").unwrap();
    std::fs::write(directories.path("ordinary"), "needle\n").unwrap();
    let link = directories.path("swapped");
    for call in reads("claude", &link).into_iter().chain(writes("claude", &link)) {
        let builder = directories.builder().rule(Behavior::Deny, "Read(private/**)", "test");
        let builder = builder.rule(Behavior::Deny, "Edit(private/**)", "test");
        assert!(swapped(builder, &directories, call, "private/a").contains("a rule denies it"));
    }
    assert_eq!(std::fs::read_to_string(directories.path("private/a")).unwrap(), "needle\n");
}

#[test]
fn e3_links_to_ordinary_files_still_work() {
    let directories = planted();
    std::fs::write(directories.path("a"), "needle\n").unwrap();
    symlink("a", directories.path("b")).unwrap();
    let haft = directories.builder().build().unwrap();
    let edited = call(
        &haft,
        "Edit",
        json!({"file_path": directories.path("b"), "old_string": "needle", "new_string": "x"}),
    );
    assert!(!edited.output.is_error(), "{}", edited.output.as_text());
    assert_eq!(std::fs::read_to_string(directories.path("a")).unwrap(), "x\n");
    assert!(Path::new(&directories.path("b")).is_symlink());
}
