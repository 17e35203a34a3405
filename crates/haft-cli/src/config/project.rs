//! The project that a directory belongs to, which is the workspace where no flag names another.

use std::path::{Path, PathBuf};

use haft_files::{find_upwards, real_named};

use super::places::{NAME, user_file};

/// The names that mark the top of a project. The first one wins also where the second is nearer, so that the rules of a
/// `haft.toml` hold in repositories below it.
const MARKERS: [&str; 2] = [NAME, ".git"];

/// The workspace for a command that is typed in a directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Project {
    /// The top of the project, else the directory itself.
    pub(crate) root: PathBuf,
    /// Why a directory with a marker was not taken.
    pub(crate) warning: Option<String>,
}

impl Project {
    /// The project of `directory`, whose links are resolved.
    pub(crate) fn of(directory: &Path) -> Self {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let home = home.map(|home| real_named(&home).unwrap_or(home));
        let own_file = user_file().ok().flatten().map(|file| real_named(&file).unwrap_or(file));
        let mut warning = None;
        for marker in MARKERS {
            let Some(found) = find_upwards(directory, marker) else { continue };
            let top = found.directory;
            if own_file.as_deref() == Some(&top.join(marker)) {
                continue;
            }
            let is_above_home = home.as_ref().is_some_and(|home| home.starts_with(&top));
            let why = if is_above_home || top.parent().is_none() {
                "your whole home or disk would be the workspace"
            } else if !found.is_own {
                "it belongs to another user"
            } else {
                return Self { root: top, warning: None };
            };
            if top != directory {
                warning.get_or_insert_with(|| {
                    format!(
                        "{} is not taken as the top of the project, because {why}. The workspace is {}; --workspace DIR \
                         names another",
                        top.join(marker).display(),
                        directory.display()
                    )
                });
            }
        }
        Self { root: directory.to_owned(), warning }
    }
}
