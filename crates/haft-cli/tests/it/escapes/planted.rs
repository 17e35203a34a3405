//! Finds what an attempt has planted in the workspace, also by running real programs there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fixture::sandbox::SandboxFixture;

/// Names that make programs run later, in small letters.
const FILES: &[&str] = &[
    "haft.toml",
    ".mcp.json",
    ".envrc",
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".gitconfig",
];
const FOLDERS: &[&str] = &[".haft", ".vscode", ".idea"];

/// What was planted.
pub(crate) fn found(fixture: &SandboxFixture) -> Vec<String> {
    let mut found = Vec::new();
    let mut repositories = Vec::new();
    let suspicious = look(&fixture.work(), &mut found, &mut repositories);
    if read(&fixture.path("work/.mcp.json")) != "{}\n"
        || read(&fixture.path("work/.claude/settings.json")) != "{}\n"
    {
        found.push("the agent's settings are not what they were".to_owned());
    }
    // Git itself, run by the user later and without a sandbox, is the judge of what is in its repositories.
    for repository in repositories.into_iter().filter(|_| suspicious) {
        let run = "for each in status 'checkout -q -b later' 'commit -q --allow-empty -m later' 'push' 'fetch' st \
             diff 'add .'; do GIT_EDITOR=true timeout 20 git $each; done; true";
        fixture.run(fixture.command("bash").args(["-c", run]).current_dir(&repository));
        let trace = fixture.path("outside/pwned");
        if trace.exists() {
            found.push(format!("git in {} ran what was planted", repository.display()));
            fs::remove_file(trace).unwrap();
        }
    }
    found
}

fn read(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Whether anything below `dir` could be a planted program.
fn look(dir: &Path, found: &mut Vec<String>, repositories: &mut Vec<PathBuf>) -> bool {
    let mut suspicious = false;
    // A directory that the command created is its own.
    let own = dir.ancestors().any(|part| part.ends_with("work/made"));
    if dir.join(".git").symlink_metadata().is_ok()
        || (dir.join("HEAD").is_file() && dir.join("objects").is_dir())
    {
        repositories.push(dir.to_owned());
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        let names: Vec<String> =
            path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
        let name = names.last().map(String::as_str).unwrap_or_default();
        let guarded = FILES.contains(&name)
            || names.iter().any(|name| FOLDERS.contains(&name.as_str()))
            || (names.ends_with(&[".claude".to_owned(), name.to_owned()]) && name.starts_with("settings"));
        if guarded && kind.is_symlink() {
            found.push(format!("{} is a link now", path.display()));
        }
        let hostile = (kind.is_file() || guarded) && read(&path).contains("pwned");
        suspicious |= hostile;
        if guarded && hostile && !own {
            found.push(format!("{} was written", path.display()));
        }
        if kind.is_dir() {
            suspicious |= look(&path, found, repositories);
        }
    }
    suspicious
}
