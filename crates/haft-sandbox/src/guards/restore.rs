//! Takes away what a judgement refuses.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use haft_tool::Node;

/// A state to restore.
#[derive(Debug)]
pub(crate) enum Restoration {
    /// Nothing was there, or it is not known what was the user's.
    Remove,
    /// This state, with the bytes of a file.
    Put(Node, Vec<u8>),
}

impl Restoration {
    /// Restores the state at `path`. Open handles of other programs keep what is there now.
    pub(crate) fn perform(&self, path: &Path) -> io::Result<()> {
        let Self::Put(node, bytes) = self else { return remove(path) };
        match node {
            Node::Absent | Node::Fifo { .. } | Node::Special => remove(path),
            Node::Dir(directory) => {
                if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir()) {
                    return Ok(());
                }
                remove(path)?;
                fs::create_dir(path)?;
                fs::set_permissions(path, Permissions::from_mode(directory.mode))
            }
            Node::File(file) => {
                if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir()) {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                let temp = temp_name(path)?;
                let put = write_new(&temp, bytes, file.mode).and_then(|()| {
                    if let Some((user, group)) = file.owner {
                        chown(&temp, Some(user), Some(group))?;
                    }
                    fs::rename(&temp, path)
                });
                put.inspect_err(|_| drop(fs::remove_file(&temp)))
            }
            Node::Link { target, .. } => {
                remove(path)?;
                symlink(target, path)
            }
        }
    }
}

/// A name for something that is put aside, under which no program uses it.
pub(crate) fn refused_name(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".refused-{:08x}", random()? >> 32));
    Ok(path.with_file_name(name))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.set_permissions(Permissions::from_mode(mode))
}

fn temp_name(path: &Path) -> io::Result<PathBuf> {
    Ok(path.with_file_name(format!(".haft-{:016x}", random()?)))
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u64::from_ne_bytes(bytes))
}
