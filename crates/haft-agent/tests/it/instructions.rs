//! The system prompt and the project's instructions.

use std::path::Path;

use haft_agent::{PromptFacts, project_instructions, system_prompt};

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn the_prompt_is_short_and_its_beginning_does_not_change_with_the_date() {
    let prompt = |date| {
        let workspace = Path::new("/home/user/a/project/of/usual/length");
        system_prompt(&PromptFacts { dialect: "claude", workspace, date, instructions: "Use tabs." })
    };
    let (one, other) = (prompt("2026-11-18"), prompt("2026-11-19"));
    assert_eq!((one.len(), &one[..2]), (3, &other[..2]));
    assert!(one[0].len() < 1_536, "{}", one[0].len());
    assert!(one[1].contains("Use tabs.") && one[2].contains("2026-11-18"));
}

#[test]
fn instructions_come_from_the_workspace_and_above_with_their_imports() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "AGENTS.md", "outside the repository");
    write(root, "repo/.git/HEAD", "");
    write(root, "repo/AGENTS.md", "top rule\nSee @docs/style.md, please.\n");
    write(root, "repo/docs/style.md", "style rule\n@../AGENTS.md\n@more.md");
    write(root, "repo/docs/more.md", "more rule `@code.md`\n```\n@fenced.md\n```\n");
    write(root, "repo/docs/code.md", "never");
    write(root, "repo/docs/fenced.md", "never");
    write(root, "repo/app/CLAUDE.md", "app rule\n@../../AGENTS.md @../.env @missing.md me@example.com\n");
    write(root, "repo/.env", "SECRET=1");
    let found = project_instructions(&root.join("repo/app"));
    let order: Vec<_> = ["top rule", "style rule", "more rule", "app rule"]
        .iter()
        .map(|rule| found.text.find(rule))
        .collect();
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{}", found.text);
    for absent in ["outside the repository", "SECRET", "never"] {
        assert!(!found.text.contains(absent), "{absent}: {}", found.text);
    }
    assert_eq!((found.files.len(), found.warnings.len()), (4, 2), "{:?}", found.warnings);
}

#[test]
fn links_lead_to_nothing_outside_and_sizes_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "secret.md", "SECRET");
    write(root, "repo/.git/HEAD", "");
    std::os::unix::fs::symlink(root.join("secret.md"), root.join("repo/AGENTS.md")).unwrap();
    write(root, "repo/CLAUDE.md", &format!("rule\n@big.md\n{}", "x".repeat(40 << 10)));
    write(root, "repo/big.md", &"y".repeat(60 << 10));
    let found = project_instructions(&root.join("repo"));
    assert!(!found.text.contains("SECRET") && found.text.contains("rule"));
    assert!(found.text.len() < 110 << 10, "{}", found.text.len());
    assert!(project_instructions(&root.join("nowhere")).text.is_empty());
}
