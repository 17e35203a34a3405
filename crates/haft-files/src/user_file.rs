//! Files that the user named on the command line or in settings, outside any call and scope.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt as _};
use std::path::{Path, PathBuf};

use haft_tool::ToolError;
use rustix::fs::{Access, OFlags};

use crate::open_regular;
use crate::replace::PRIVATE_MODE;
use crate::resolve::MAX_LINKS;

/// Whether the path leads to a directory.
pub fn is_directory(path: &Path) -> io::Result<bool> {
    std::fs::metadata(path).map(|meta| meta.is_dir())
}

/// Whether this user may create files in a directory.
pub fn is_writable(directory: &Path) -> bool {
    rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Reads a regular file of at most `max_bytes`.
pub fn read_named(path: &Path, max_bytes: u64) -> Result<Vec<u8>, ToolError> {
    let failed = |error: io::Error| ToolError::io(path.display(), &error);
    let file = open_regular(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => {
            ToolError::invalid_path(format!("{} is not a regular file", path.display()))
        }
        _ => failed(error),
    })?;
    read_bounded(file, max_bytes).map_err(failed)?.ok_or_else(|| {
        ToolError::invalid_arguments(format!(
            "{} has more than {max_bytes} bytes, which is the limit",
            path.display()
        ))
    })
}

/// The first `limit` names in a directory, sorted; none if it does not exist.
pub fn names_in(directory: &Path, limit: usize) -> Vec<OsString> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort_unstable();
    names.truncate(limit);
    names
}

/// Writes a file that only its user may read, in place of what was there.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), ToolError> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(PRIVATE_MODE);
    let written = options.open(path).and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| ToolError::io(path.display(), &error))
}

/// Opens a log for appending, which only its user may read. If it has more than `max_bytes`, it is first renamed, in place of
/// an earlier one.
pub fn append_private(path: &Path, max_bytes: u64) -> Result<File, ToolError> {
    let failed = |error: &io::Error| ToolError::io(path.display(), error);
    if std::fs::symlink_metadata(path).is_ok_and(|meta| meta.len() > max_bytes) {
        let mut earlier = path.as_os_str().to_owned();
        earlier.push(".1");
        std::fs::rename(path, earlier).map_err(|error| failed(&error))?;
    }
    let mut options = File::options();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.append(true).create(true).mode(PRIVATE_MODE).custom_flags(flags.bits().cast_signed());
    options.open(path).map_err(|error| failed(&error))
}

/// Writes a regular file that from now on only its user may read. A link at the end of the path is not followed.
pub fn overwrite_private(path: &Path, bytes: &[u8]) -> Result<(), ToolError> {
    let refused = |what: &str| {
        let path = path.display();
        Err(ToolError::invalid_path(format!("{path} is {what}, so it was not written. Name a regular file.")))
    };
    let failed = |error: &io::Error| ToolError::io(path.display(), error);
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => return refused("a symbolic link"),
        Ok(meta) if !meta.is_file() => return refused("no regular file"),
        _ => {}
    }
    let mut options = File::options();
    // What another program has put there since is neither followed nor waited for.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(PRIVATE_MODE)
        .custom_flags(flags.bits().cast_signed());
    let mut file = options.open(path).map_err(|error| failed(&error))?;
    if !file.metadata().map_err(|error| failed(&error))?.is_file() {
        return refused("no regular file");
    }
    let written = file
        .set_permissions(Permissions::from_mode(PRIVATE_MODE))
        .and_then(|()| file.set_len(0))
        .and_then(|()| file.write_all(bytes));
    written.map_err(|error| failed(&error))
}

/// The path with all links resolved; its end need not exist.
pub fn real_named(path: &Path) -> Result<PathBuf, ToolError> {
    let failed = |error: &io::Error| ToolError::io(path.display(), error);
    let (mut current, mut missing, mut links) = (path.to_owned(), Vec::new(), 0);
    loop {
        let error = match current.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Ok(real);
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&error)),
            Err(error) => error,
        };
        let (Some(parent), Some(name)) = (current.parent(), current.file_name()) else {
            return Err(failed(&error));
        };
        if let Ok(target) = std::fs::read_link(&current) {
            // A dangling link.
            links += 1;
            if links > MAX_LINKS {
                return Err(ToolError::invalid_path(format!("{}: too many links", path.display())));
            }
            current = parent.join(target);
        } else {
            missing.push(name.to_owned());
            current = parent.to_owned();
        }
    }
}

/// Where those of these paths lead that exist and that a link leads elsewhere.
///
/// Most paths of such a list do not exist, and many share a directory, so each directory is resolved once.
pub fn link_targets(paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut directories: HashMap<PathBuf, Option<PathBuf>> = HashMap::new();
    let mut targets = Vec::new();
    for path in paths {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let real_parent =
            directories.entry(parent.to_owned()).or_insert_with(|| parent.canonicalize().ok()).clone();
        let Some(entry) = real_parent.map(|parent| parent.join(name)) else { continue };
        let Ok(stat) = entry.symlink_metadata() else { continue };
        let target = if stat.is_symlink() { entry.canonicalize().ok() } else { Some(entry) };
        targets.extend(target.filter(|target| *target != path));
    }
    targets
}

/// Reads a stream to its end; `None` if it has more than `max_bytes`.
pub fn read_bounded(from: impl Read, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.take(max_bytes + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max_bytes).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_paths_with_links_have_targets() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("dotfiles/config/gh")).unwrap();
        std::fs::create_dir(base.join("plain")).unwrap();
        symlink("dotfiles/config", base.join("config")).unwrap();
        symlink("dotfiles", base.join("ssh")).unwrap();
        symlink("missing", base.join("dangling")).unwrap();
        let paths = ["plain", "none", "none/x", "dangling", "ssh", "config/gh", "config/none"];
        let targets = link_targets(paths.map(|path| base.join(path)));
        assert_eq!(targets, ["dotfiles", "dotfiles/config/gh"].map(|path| base.join(path)));
    }

    #[test]
    fn real_path_follows_links_to_missing_files() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("real")).unwrap();
        std::fs::write(base.join("real/file"), "").unwrap();
        symlink("real", base.join("folder")).unwrap();
        symlink("../real/file", base.join("real/there")).unwrap();
        symlink("new/deep", base.join("real/dangling")).unwrap();
        symlink("circle", base.join("circle")).unwrap();
        for (name, real) in [
            ("folder/file", "real/file"),
            ("folder/there", "real/file"),
            ("folder/dangling", "real/new/deep"),
            ("folder/none/at/all", "real/none/at/all"),
        ] {
            assert_eq!(real_named(&base.join(name)).unwrap(), base.join(real), "{name}");
        }
        assert!(real_named(&base.join("circle")).is_err());
        assert!(real_named(&base.join("real/file/below")).is_err());
    }
}
