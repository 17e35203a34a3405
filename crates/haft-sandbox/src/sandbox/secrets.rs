//! Where the secrets are: the scope's globs as paths and as names.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::names::fits;
use super::resolver::Resolver;

/// How many entries of one directory a glob in a path, or the search for links in a secret folder, looks at.
const MOST_LISTED: usize = 1_000;

/// The secrets as paths, there or not, and as globs for a name that is secret anywhere.
///
/// Where a path is a link, what it leads to is secret too; so are the files that links in a secret folder lead to.
pub(crate) fn places(
    secrets: &[String],
    home: Option<&Path>,
    resolver: &mut Resolver,
) -> (Vec<PathBuf>, Vec<String>) {
    let (mut paths, mut names) = (Vec::new(), Vec::new());
    let homes: Vec<PathBuf> =
        home.iter().flat_map(|home| [home.to_path_buf(), resolver.resolve(home)]).collect();
    for secret in secrets {
        let path = match (secret.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            // Nobody's home holds nobody's secrets.
            (Some(_), None) => continue,
            (None, _) if secret.starts_with('/') => PathBuf::from(secret),
            (None, _) => {
                // Of a relative path the last name counts: rather one file too many than one too few.
                let name = secret.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                if !name.is_empty() && name != "." && name != ".." {
                    names.push(name.to_owned());
                }
                continue;
            }
        };
        for place in expanded(&path) {
            add(&mut paths, place, resolver, &homes);
        }
    }
    (paths, names)
}

/// Adds `place` and what it leads to.
fn add(paths: &mut Vec<PathBuf>, place: PathBuf, resolver: &mut Resolver, homes: &[PathBuf]) {
    let (target, exists) = resolver.look(&place);
    // A link to the home or to all there is tells where somebody keeps things, not that all of it is secret.
    let too_much = |path: &Path| path.parent().is_none() || homes.iter().any(|home| home.starts_with(path));
    let linked = if exists && !too_much(&target) { linked_files(&target) } else { Vec::new() };
    for path in [place, target].into_iter().chain(linked) {
        if !too_much(&path) && !paths.iter().any(|known| known.as_os_str() == path.as_os_str()) {
            paths.push(path);
        }
    }
}

/// The regular files outside that links in a folder lead to: keys are often kept elsewhere and linked.
fn linked_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let links = entries
        .take(MOST_LISTED)
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .filter_map(|entry| fs::canonicalize(entry.path()).ok());
    links.filter(|target| !target.starts_with(folder) && target.is_file()).collect()
}

/// The paths that a path with globs in its parts means now, and the path itself.
fn expanded(path: &Path) -> Vec<PathBuf> {
    let is_glob = |part: &OsStr| part.as_bytes().iter().any(|byte| matches!(byte, b'*' | b'?' | b'['));
    if !is_glob(path.as_os_str()) {
        return vec![path.components().collect()];
    }
    let mut places = vec![PathBuf::new()];
    for part in path.components() {
        let part = part.as_os_str();
        let next = |place: PathBuf| {
            let found = if is_glob(part) { listed(&place, part) } else { Vec::new() };
            // As it is written it keeps its folder from being granted whole, so that what comes later is covered too.
            let mut next = vec![place.join(part)];
            next.extend(found);
            next
        };
        places = places.into_iter().flat_map(next).take(MOST_LISTED).collect();
    }
    places
}

fn listed(folder: &Path, glob: &OsStr) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let fitting = entries
        .take(MOST_LISTED)
        .filter_map(Result::ok)
        .filter(|entry| fits(glob.as_bytes(), entry.file_name().as_bytes()));
    fitting.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn places(secrets: &[String], home: Option<&Path>) -> (Vec<PathBuf>, Vec<String>) {
        super::places(secrets, home, &mut Resolver::default())
    }

    fn owned(list: &[&str]) -> Vec<String> {
        list.iter().map(|&one| one.to_owned()).collect()
    }

    #[test]
    fn entries_are_paths_in_the_home_or_from_the_root_or_names() {
        let secrets = owned(&["~/.ssh", "/etc/keys", ".env", "config/prod.key", "**/*.pem", "~/", "/"]);
        let (paths, names) = places(&secrets, Some(Path::new("/nobody/here")));
        assert_eq!(paths, [Path::new("/nobody/here/.ssh"), Path::new("/etc/keys")]);
        assert_eq!(names, [".env", "prod.key", "*.pem"]);
        assert_eq!(places(&owned(&["~/.ssh"]), None), (vec![], vec![]));
    }

    #[test]
    fn what_a_link_leads_to_is_secret_too() {
        let place = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(place.path()).unwrap();
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
        let (paths, _) = places(&owned(&["~/.ssh", "~/.aws", "~/.netrc", "~/.kube"]), Some(&home));
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
    fn a_glob_in_a_path_means_what_is_there_and_what_comes() {
        let place = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(place.path()).unwrap();
        fs::write(home.join("id_rsa"), "").unwrap();
        fs::write(home.join("other"), "").unwrap();
        let (paths, _) = places(&owned(&["~/id_*"]), Some(&home));
        assert_eq!(paths, [home.join("id_*"), home.join("id_rsa")]);
    }
}
