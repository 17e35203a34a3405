//! Whether a folder holds anything that is secret by its name.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haft_tool::lock;

use super::names::Names;
use super::stamps::Stamps;

/// How many entries of a folder are looked at before it counts as large.
pub(crate) const MOST_ENTRIES: usize = 20_000;
/// Folders that hold what others wrote and machines made, in great numbers; a secret of the user's is not among it.
const NOBODYS: &[&str] =
    &[".git", "node_modules", "target", ".venv", "venv", "__pycache__", "site-packages", ".tox", "vendor"];
/// How many answers are kept, the last used first.
const KEPT: usize = 16;

/// What a bounded look into a folder found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// No such name.
    None,
    /// At least one.
    Some,
    /// More entries than were to be looked at, and no such name among them; or a folder that cannot be listed.
    TooMany,
}

#[cfg(test)]
fn any_inside(root: &Path, names: &Names, most_entries: usize) -> Found {
    look(root, names, most_entries).0
}

/// Answers, kept until one of the directories that were listed changes.
#[derive(Debug, Default)]
pub(crate) struct Searches(Mutex<Vec<Search>>);

#[derive(Debug)]
struct Search {
    root: PathBuf,
    names: Names,
    most: usize,
    found: Found,
    seen: Stamps,
}

impl Searches {
    /// Whether `root` holds anything with one of `names`, looking at no more than `most` entries. Links are not followed.
    pub(crate) fn any_inside(&self, root: &Path, names: &Names, most: usize) -> Found {
        let mut all = lock(&self.0);
        let known = all.iter().position(|known| {
            known.most == most && known.root.as_os_str() == root.as_os_str() && known.names == *names
        });
        let known = known.map(|at| all.remove(at)).filter(|known| known.seen.are_current());
        let search = known.unwrap_or_else(|| {
            let (found, seen) = look(root, names, most);
            Search { root: root.to_owned(), names: names.clone(), most, found, seen }
        });
        let found = search.found;
        all.insert(0, search);
        all.truncate(KEPT);
        found
    }
}

/// What is found, and the directories that were listed for it.
fn look(root: &Path, names: &Names, most_entries: usize) -> (Found, Stamps) {
    let mut seen = Stamps::default();
    if names.is_empty() {
        return (Found::None, seen);
    }
    // Level by level: such files lie near the top.
    let mut ahead = VecDeque::from([root.to_owned()]);
    let mut left = most_entries;
    let mut found = Found::None;
    while let Some(folder) = ahead.pop_front() {
        let (Ok(stat), Ok(entries)) = (rustix::fs::lstat(&folder), fs::read_dir(&folder)) else {
            found = Found::TooMany;
            continue;
        };
        seen.add(&folder, &stat);
        for entry in entries {
            let Ok(entry) = entry else {
                found = Found::TooMany;
                break;
            };
            if left == 0 {
                return (Found::TooMany, seen);
            }
            left -= 1;
            if names.matches(&entry.file_name()) {
                return (Found::Some, seen);
            }
            let name = entry.file_name();
            let nobodys = NOBODYS.iter().any(|folder| name == *folder);
            if !nobodys && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                ahead.push_back(entry.path());
            }
        }
    }
    (found, seen)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn owned(list: &[&str]) -> Vec<String> {
        list.iter().map(|&one| one.to_owned()).collect()
    }

    #[test]
    fn a_kept_answer_changes_with_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let names = Names::new(owned(&[".env"]));
        let searches = Searches::default();
        fs::create_dir_all(place.path().join("a/b")).unwrap();
        let ask = || searches.any_inside(place.path(), &names, MOST_ENTRIES);
        assert_eq!((ask(), ask()), (Found::None, Found::None));
        fs::write(place.path().join("a/b/.env"), "").unwrap();
        assert_eq!((ask(), ask()), (Found::Some, Found::Some));
        fs::remove_file(place.path().join("a/b/.env")).unwrap();
        assert_eq!(ask(), Found::None);
        assert_eq!(searches.any_inside(place.path(), &names, 1), Found::TooMany);
    }

    #[test]
    fn a_folder_is_searched_for_names_within_bounds() {
        let place = tempfile::tempdir().unwrap();
        let names = Names::new(owned(&[".env", ".env.*"]));
        fs::create_dir_all(place.path().join("a/b/c")).unwrap();
        fs::write(place.path().join("a/b/.env.example"), "").unwrap();
        symlink("/", place.path().join("a/all")).unwrap();
        assert_eq!(any_inside(place.path(), &names, MOST_ENTRIES), Found::None);
        assert_eq!(any_inside(place.path(), &names, 5), Found::None);
        assert_eq!(any_inside(place.path(), &names, 4), Found::TooMany);
        fs::write(place.path().join("a/b/c/.env"), "").unwrap();
        assert_eq!(any_inside(place.path(), &names, MOST_ENTRIES), Found::Some);
        assert_eq!(any_inside(&place.path().join("gone"), &names, MOST_ENTRIES), Found::TooMany);
        assert_eq!(any_inside(Path::new("/"), &Names::default(), 0), Found::None);
    }
}
