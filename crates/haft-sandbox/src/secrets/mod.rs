//! The secrets of a scope: paths and names of files that commands may not read.

mod names;
mod path_resolver;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_policy::is_secret_name;

pub(crate) use names::SecretNames;
pub(crate) use path_resolver::PathResolver;

/// Entries of one directory that a glob in a path, or the search for links in a secret directory, looks at.
const MAX_LISTED_ENTRIES: usize = 1_000;

/// Splits the secrets of a scope into absolute paths, existing or not, and globs for names that are secret anywhere.
///
/// The target of a secret link is secret, too; so are the targets of links in a secret directory.
pub(crate) fn locate_secrets(
    secrets: &[String],
    home: Option<&Path>,
    resolver: &mut PathResolver,
) -> (Vec<PathBuf>, Vec<String>) {
    let (mut paths, mut names) = (Vec::new(), Vec::new());
    let homes: Vec<PathBuf> =
        home.iter().flat_map(|home| [home.to_path_buf(), resolver.resolve(home).path]).collect();
    for secret in secrets {
        let path = match (secret.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => continue,
            (None, _) if secret.starts_with('/') => PathBuf::from(secret),
            (None, _) => {
                // Only the last name of a relative path counts: one file too many is better than one too few.
                let name = secret.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                if !name.is_empty() && name != "." && name != ".." {
                    names.push(name.to_owned());
                }
                continue;
            }
        };
        for path in expand(&path) {
            add_with_targets(&mut paths, path, resolver, &homes);
        }
    }
    (paths, names)
}

/// Adds `path` and what it leads to.
fn add_with_targets(paths: &mut Vec<PathBuf>, path: PathBuf, resolver: &mut PathResolver, homes: &[PathBuf]) {
    let target = resolver.resolve(&path);
    // A link to the home or the root must not make all of it secret.
    let is_too_much =
        |path: &Path| path.parent().is_none() || homes.iter().any(|home| home.starts_with(path));
    let linked =
        if target.exists && !is_too_much(&target.path) { linked_files(&target.path) } else { Vec::new() };
    for path in [path, target.path].into_iter().chain(linked) {
        if !is_too_much(&path) && !paths.iter().any(|known| known.as_os_str() == path.as_os_str()) {
            paths.push(path);
        }
    }
}

/// The regular files outside of a directory that links in it lead to: keys are often stored elsewhere and linked.
fn linked_files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let links = entries
        .take(MAX_LISTED_ENTRIES)
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .filter_map(|entry| fs::canonicalize(entry.path()).ok());
    links.filter(|target| !target.starts_with(directory) && target.is_file()).collect()
}

/// The existing paths that match a path with globs, and the path itself.
fn expand(path: &Path) -> Vec<PathBuf> {
    let is_glob = |part: &OsStr| part.as_bytes().contains(&b'*');
    if !is_glob(path.as_os_str()) {
        return vec![path.components().collect()];
    }
    let mut paths = vec![PathBuf::new()];
    for part in path.components() {
        let part = part.as_os_str();
        let next = |path: PathBuf| {
            let found = if is_glob(part) { matching_entries(&path, part) } else { Vec::new() };
            // The path as written is kept, so that its directory is not granted whole and later files are covered.
            let mut next = vec![path.join(part)];
            next.extend(found);
            next
        };
        paths = paths.into_iter().flat_map(next).take(MAX_LISTED_ENTRIES).collect();
    }
    paths
}

fn matching_entries(directory: &Path, glob: &OsStr) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let Some(glob) = glob.to_str() else { return Vec::new() };
    let entries = entries.take(MAX_LISTED_ENTRIES).filter_map(Result::ok);
    entries.filter(|entry| is_secret_name(&[glob], &entry.file_name())).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn locate(secrets: &[&str], home: Option<&Path>) -> (Vec<PathBuf>, Vec<String>) {
        let secrets: Vec<String> = secrets.iter().map(|&secret| secret.to_owned()).collect();
        locate_secrets(&secrets, home, &mut PathResolver::default())
    }

    #[test]
    fn secrets_are_paths_in_the_home_absolute_paths_or_names() {
        let secrets = ["~/.ssh", "/etc/keys", ".env", "config/prod.key", "**/*.pem", "~/", "/"];
        let (paths, names) = locate(&secrets, Some(Path::new("/missing/home")));
        assert_eq!(paths, [Path::new("/missing/home/.ssh"), Path::new("/etc/keys")]);
        assert_eq!(names, [".env", "prod.key", "*.pem"]);
        assert_eq!(locate(&["~/.ssh"], None), (vec![], vec![]));
    }

    #[test]
    fn link_targets_are_secret() {
        let directory = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(directory.path()).unwrap();
        let home = base.join("home");
        for folder in ["home/.aws", "dotfiles/ssh", "real"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        fs::write(base.join("real/credentials"), "").unwrap();
        symlink("../dotfiles/ssh", home.join(".ssh")).unwrap();
        symlink(base.join("real/credentials"), home.join(".aws/credentials")).unwrap();
        symlink("/", home.join(".aws/all")).unwrap();
        symlink(base.join("later"), home.join(".netrc")).unwrap();
        symlink(&base, home.join(".kube")).unwrap();
        let (paths, _) = locate(&["~/.ssh", "~/.aws", "~/.netrc", "~/.kube"], Some(&home));
        let expected = [
            "home/.ssh",
            "dotfiles/ssh",
            "home/.aws",
            "real/credentials",
            "home/.netrc",
            "later",
            "home/.kube",
        ];
        assert_eq!(paths, expected.map(|path| base.join(path)));
    }

    #[test]
    fn globs_in_paths_match_existing_and_later_files() {
        let directory = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(directory.path()).unwrap();
        fs::write(home.join("id_rsa"), "").unwrap();
        fs::write(home.join("other"), "").unwrap();
        let (paths, _) = locate(&["~/id_*"], Some(&home));
        assert_eq!(paths, [home.join("id_*"), home.join("id_rsa")]);
    }
}
