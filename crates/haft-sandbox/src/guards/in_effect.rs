//! Finds the files that programs outside the sandbox would use. An undo compares those before it with those after it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use haft_policy::{guarded, settings_rule};
use haft_tool::{FileNode, Node, Record, ToolError};

use super::git::{CONFIGS, is_executable, may_be_hook};
use super::named::{NamedFiles, ways};
use super::{GuardedContent, content_now, files_in, names_in, node_now};
use crate::git_config::new_programs;

/// How programs use a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EffectOfFile {
    /// A link that is named like settings leads to it.
    Settings,
    /// Git reads it as a configuration.
    Config,
    /// It is in a directory that git takes hooks from.
    Hook,
    /// A git configuration names it as a program.
    Program,
}

/// What programs would use of a file: its hash and whether it is executable. `None` for anything else.
type UsedContent = Option<(String, bool)>;

/// The files that links, git directories and git configurations below some roots lead to.
#[derive(Debug, Default)]
pub struct FilesInEffect {
    roots: Vec<PathBuf>,
    files: BTreeSet<(PathBuf, EffectOfFile, UsedContent)>,
}

impl FilesInEffect {
    /// Finds the files that are in effect now.
    pub fn find(roots: &[PathBuf]) -> Self {
        let named = NamedFiles::find(roots);
        let _opened = named.open(roots);
        let mut files = BTreeSet::new();
        for (link, target) in
            named.links.iter().flat_map(|link| ways(link).into_iter().map(move |way| (link, way)))
        {
            let is_setting = |path: &PathBuf| {
                path.strip_prefix(&target).is_ok_and(|below| settings_rule(&link.join(below)).is_some())
            };
            match if target.is_dir() { files_in(&target) } else { None } {
                Some(found) => files
                    .extend(found.into_iter().filter(is_setting).map(|path| (path, EffectOfFile::Settings))),
                // A directory that cannot be listed is added in place of its files.
                None => drop(files.insert((target, EffectOfFile::Settings))),
            }
        }
        for repository in &named.repositories {
            let named = repository.named();
            let own = CONFIGS.iter().map(|name| repository.common.join(name));
            let configs = own.chain(named.configs).flat_map(|config| ways(&config));
            files.extend(configs.map(|path| (path, EffectOfFile::Config)));
            files.extend(
                named.programs.iter().flat_map(|path| ways(path)).map(|path| (path, EffectOfFile::Program)),
            );
            for hooks in named.hooks {
                let names = names_in(&hooks).unwrap_or_default().into_iter().filter(|name| may_be_hook(name));
                files.extend(
                    names.flat_map(|name| ways(&hooks.join(name))).map(|path| (path, EffectOfFile::Hook)),
                );
            }
        }
        let files = files.into_iter().map(|(path, file_use)| {
            let content = node_now(&path).as_file().map(|file| (file.hash.clone(), is_executable(file)));
            (path, file_use, content)
        });
        Self { roots: roots.to_vec(), files: files.collect() }
    }

    /// A file that has come into effect since [`Self::find`], or has got other content, if a call left its content only where
    /// that was not judged.
    pub fn newly_unjudged(&self, record: &dyn Record) -> Result<Option<PathBuf>, ToolError> {
        let now = Self::find(&self.roots);
        for (path, file_use, _) in now.files.difference(&self.files) {
            if is_unjudged(path, *file_use, record)? {
                return Ok(Some(path.clone()));
            }
        }
        Ok(None)
    }
}

/// Whether programs would use what is in the file, and calls left it only where it was not judged.
fn is_unjudged(path: &Path, file_use: EffectOfFile, record: &dyn Record) -> Result<bool, ToolError> {
    let file = match node_now(path) {
        Node::File(file) if file.size > 0 => file,
        // The target of a link is listed too.
        Node::File(_) | Node::Absent | Node::Link { .. } => return Ok(false),
        _ => return Ok(file_use == EffectOfFile::Settings),
    };
    let has_effect = match file_use {
        EffectOfFile::Settings | EffectOfFile::Program => true,
        EffectOfFile::Hook => is_executable(&file),
        EffectOfFile::Config => match content_now(path) {
            GuardedContent::Bytes(bytes) => !new_programs(path, &[], &bytes).is_empty(),
            GuardedContent::Absent => false,
            GuardedContent::Unreadable => true,
        },
    };
    let was_judged = |other: &Path, left: &FileNode| {
        guarded(other).is_some() && (file_use != EffectOfFile::Hook || is_executable(left))
    };
    Ok(has_effect && record.is_from_call(&file.hash, &was_judged)?)
}
