//! Files that the user named on the command line, outside any call and any scope.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use haft_tool::ToolError;

/// As many links as the kernel itself would follow.
const MOST_LINKS: u32 = 40;

/// Reads a file the user named, if it is a regular one of at most `most` bytes.
pub fn read_named(path: &Path, most: u64) -> Result<Vec<u8>, ToolError> {
    let failed = |error: &std::io::Error| ToolError::io(path.display(), error);
    // A FIFO must not make the open wait.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(|error| failed(&error))?;
    if !file.metadata().map_err(|error| failed(&error))?.is_file() {
        return Err(ToolError::invalid_path(format!("{} is not a regular file", path.display())));
    }
    read_bounded(file, most)?.ok_or_else(|| {
        ToolError::invalid_arguments(format!(
            "{} has more than {most} bytes, which is the limit",
            path.display()
        ))
    })
}

/// The first `most` names in a folder, sorted; none if there is no such folder.
pub fn names_in(folder: &Path, most: usize) -> Vec<OsString> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort_unstable();
    names.truncate(most);
    names
}

/// Where a file that the user named really is, links followed; it need not be there yet.
pub fn real_named(path: &Path) -> Result<PathBuf, ToolError> {
    let failed = |error: &std::io::Error| ToolError::io(path.display(), error);
    let mut here = path.to_owned();
    for _ in 0..MOST_LINKS {
        match here.canonicalize() {
            Ok(real) => return Ok(real),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(&error)),
            Err(error) => {
                let (Some(parent), Some(name)) = (here.parent(), here.file_name()) else {
                    return Err(failed(&error));
                };
                match std::fs::read_link(&here) {
                    // It leads to what is not there yet.
                    Ok(target) => here = parent.join(target),
                    Err(_) => return Ok(real_named(parent)?.join(name)),
                }
            }
        }
    }
    Err(ToolError::invalid_path(format!("{}: too many links", path.display())))
}

/// Reads a stream to its end; `None` if it has more than `most` bytes.
pub fn read_bounded(from: impl Read, most: u64) -> Result<Option<Vec<u8>>, ToolError> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes).map_err(|error| ToolError::io("read", &error))?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_name_leads_through_links_also_to_what_is_not_there_yet() {
        let held = tempfile::tempdir().unwrap();
        let base = held.path().canonicalize().unwrap();
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
