//! A project's instructions for agents: `AGENTS.md` and `CLAUDE.md`, with what they import by `@path`.
//!
//! The files come from the project and go to a provider, so only text below the project's top directory is read, whatever links
//! and imports name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use haft_files::{find_upwards, read_named, real_named};
use haft_tool::{ErrorKind, lies_in};

/// The files that are read in each directory.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Directories of other projects' files, whose instructions do not count.
const FOREIGN_DIRECTORIES: [&str; 2] = [".git", "node_modules"];
/// What an import may be called.
const IMPORTED_EXTENSIONS: [&str; 3] = ["md", "mdc", "txt"];
/// How deep imports may be nested.
const MAX_IMPORT_DEPTH: usize = 5;
/// All instructions together.
const MAX_TOTAL_BYTES: usize = 64 << 10;

/// The instructions of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectInstructions {
    /// The text, the outermost directory first.
    pub text: String,
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// What was left out, and why.
    pub warnings: Vec<String>,
}

/// Reads the instructions of the workspace and of the directories above it, up to the top of its repository.
pub fn project_instructions(workspace: &Path) -> ProjectInstructions {
    let Ok(workspace) = real_named(workspace) else { return ProjectInstructions::default() };
    let found = find_upwards(&workspace, ".git").filter(|found| found.is_own);
    let top = found.map_or_else(|| workspace.clone(), |found| found.directory);
    let mut reading =
        InstructionReader { top: &top, seen: BTreeSet::new(), result: ProjectInstructions::default() };
    let mut directories: Vec<&Path> =
        workspace.ancestors().take_while(|directory| lies_in(directory, &top)).collect();
    directories.reverse();
    for directory in directories {
        for name in NAMES {
            let path = directory.join(name);
            if let Some(text) = reading.read(&path, 0) {
                let title = path.strip_prefix(&top).unwrap_or(&path).display().to_string();
                reading.result.text.push_str(&format!("# {title}\n\n{}\n\n", text.trim()));
            }
        }
    }
    reading.result
}

/// Reads the user's own instructions: `CLAUDE.md` in `.claude` of the home.
pub fn user_instructions(home: &Path) -> ProjectInstructions {
    let Ok(top) = real_named(&home.join(".claude")) else { return ProjectInstructions::default() };
    let mut reading =
        InstructionReader { top: &top, seen: BTreeSet::new(), result: ProjectInstructions::default() };
    if let Some(text) = reading.read(&top.join("CLAUDE.md"), 0) {
        reading.result.text = format!("# ~/.claude/CLAUDE.md\n\n{}\n\n", text.trim());
    }
    reading.result
}

/// Reads the instructions below the workspace that hold for these paths: those of each directory on the way to a path, and of the
/// path itself. Files in `seen` are left out.
pub(crate) fn nested_instructions(
    workspace: &Path,
    paths: &[PathBuf],
    seen: &BTreeSet<PathBuf>,
) -> ProjectInstructions {
    let Ok(top) = real_named(workspace) else { return ProjectInstructions::default() };
    let mut directories = BTreeSet::new();
    for path in paths {
        let below =
            path.strip_prefix(workspace).or_else(|_| path.strip_prefix(&top)).unwrap_or(Path::new(""));
        if below.components().any(|part| FOREIGN_DIRECTORIES.iter().any(|name| part.as_os_str() == *name)) {
            continue;
        }
        directories
            .extend(below.ancestors().filter(|part| !part.as_os_str().is_empty()).map(|part| top.join(part)));
    }
    let mut reading =
        InstructionReader { top: &top, seen: seen.clone(), result: ProjectInstructions::default() };
    for path in directories.iter().flat_map(|directory| NAMES.map(|name| directory.join(name))) {
        if let Some(text) = reading.read(&path, 0) {
            let title = path.strip_prefix(&top).unwrap_or(&path).display().to_string();
            reading.result.text.push_str(&format!("# {title}\n\n{}\n\n", text.trim()));
        }
    }
    reading.result
}

struct InstructionReader<'a> {
    top: &'a Path,
    /// Files that were read, so that each is read once.
    seen: BTreeSet<PathBuf>,
    result: ProjectInstructions,
}

impl InstructionReader<'_> {
    /// The text of a file with its imports in place; `None` if it does not exist, was read already or must not be read.
    fn read(&mut self, path: &Path, depth: usize) -> Option<String> {
        let real = real_named(path).ok()?;
        if self.seen.contains(&real) {
            return None;
        }
        let is_text = real.extension().and_then(|extension| extension.to_str());
        let is_text = is_text.is_some_and(|extension| IMPORTED_EXTENSIONS.contains(&extension));
        let left = MAX_TOTAL_BYTES.saturating_sub(self.result.text.len());
        let bytes = match read_named(&real, left as u64) {
            Ok(_) if !lies_in(&real, self.top) => return self.skip(path, "it lies outside the project"),
            Ok(_) if !is_text => return self.skip(path, "only .md, .mdc and .txt files are read"),
            Ok(bytes) => bytes,
            Err(error) if error.kind == ErrorKind::FileNotFound => return None,
            Err(error) => return self.skip(path, &error.message),
        };
        self.seen.insert(real.clone());
        self.result.files.push(real.clone());
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Some(self.with_imports(&text, real.parent().unwrap_or(self.top), depth))
    }

    fn skip(&mut self, path: &Path, why: &str) -> Option<String> {
        self.result.warnings.push(format!("{} is not read as instructions: {why}", path.display()));
        None
    }

    /// The text with the files that it imports below the lines that name them.
    fn with_imports(&mut self, text: &str, directory: &Path, depth: usize) -> String {
        let mut all = String::with_capacity(text.len());
        let mut in_code = false;
        for line in text.lines() {
            all.push_str(line);
            all.push('\n');
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            }
            if in_code || depth >= MAX_IMPORT_DEPTH {
                continue;
            }
            for name in imports(line) {
                let imported = self.read(&directory.join(name), depth + 1);
                if let Some(imported) = imported.filter(|text| self.fits(&all, text)) {
                    all.push_str(&format!("\n{}\n\n", imported.trim()));
                }
            }
        }
        all
    }

    fn fits(&self, so_far: &str, more: &str) -> bool {
        self.result.text.len() + so_far.len() + more.len() <= MAX_TOTAL_BYTES
    }
}

/// The paths that a line imports: words that begin with `@`, outside of code.
fn imports(line: &str) -> impl Iterator<Item = &str> {
    let outside_code = line.split('`').step_by(2).flat_map(str::split_whitespace);
    let names = outside_code.filter_map(|word| word.strip_prefix('@'));
    names
        .map(|name| name.trim_end_matches(['.', ',', ';', ':', ')']))
        .filter(|name| !name.is_empty() && name.contains(['.', '/']))
}
