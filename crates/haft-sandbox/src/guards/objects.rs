//! Looks up a file's content in a git object database, without running git, which would follow the repository's
//! configuration.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use haft_files::{open_regular, read_regular};
use haft_tool::{GitObjectFile, GitObjectId};

use super::MAX_CONTENT_BYTES;

/// The magic number and the version of a pack's index.
const INDEX_HEADER: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
const FANOUT_BYTES: u64 = 256 * 4;
const MAX_PACKS: usize = 1000;
/// More levels of `.git` files and links are not followed.
const MAX_POINTERS: usize = 4;

/// The id that git gives a file with this content.
pub(super) fn blob_id(content: &[u8]) -> GitObjectId {
    let mut object = format!("blob {}\0", content.len()).into_bytes();
    object.extend_from_slice(content);
    sha1(&object)
}

/// The files of the repository around `directory` that have the object: a loose object or indexes of packs.
pub(super) fn object_files(directory: &Path, id: &GitObjectId) -> Vec<GitObjectFile> {
    let repository = directory.ancestors().find_map(|above| git_directory(&above.join(".git")));
    let Some(objects) = repository.map(|git| common_directory(&git).join("objects")) else {
        return Vec::new();
    };
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut found = Vec::new();
    let loose = objects.join(&hex[..2]).join(&hex[2..]);
    if is_plain_file(&loose) {
        found.push(loose);
    }
    let packs = fs::read_dir(objects.join("pack")).into_iter().flatten().flatten().take(MAX_PACKS);
    for pack in packs.map(|pack| pack.path()) {
        let is_index = pack.extension().is_some_and(|extension| extension == "idx");
        if is_index && is_plain_file(&pack) && open_regular(&pack).is_ok_and(|index| has_object(&index, id)) {
            found.push(pack);
        }
    }
    found.into_iter().filter_map(object_file).collect()
}

fn object_file(path: PathBuf) -> Option<GitObjectFile> {
    let changed_at = changed_at(&path)?;
    let created = fs::symlink_metadata(&path).ok()?.created().ok();
    let created = created.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let created_at = created.and_then(|time| u64::try_from(time.as_millis()).ok()).unwrap_or(changed_at);
    Some(GitObjectFile { path, created_at, changed_at })
}

/// When the inode of a file last changed, in milliseconds since 1970. Programs cannot set this time.
pub(super) fn changed_at(path: &Path) -> Option<u64> {
    let meta = fs::symlink_metadata(path).ok()?;
    let millis = meta.ctime().checked_mul(1000)?.checked_add(meta.ctime_nsec() / 1_000_000)?;
    u64::try_from(millis).ok()
}

/// Whether the path is that of a regular file without links on the way, so that records have the same path.
fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
        && fs::canonicalize(path).is_ok_and(|real| real == path)
}

/// The git directory that a `.git` is or leads to, without links.
pub(super) fn git_directory(dot_git: &Path) -> Option<PathBuf> {
    let mut path = dot_git.to_owned();
    for _ in 0..MAX_POINTERS {
        let meta = fs::metadata(&path).ok()?;
        if meta.is_dir() {
            return fs::canonicalize(path).ok();
        }
        let line = read_line(&path)?;
        path = path.parent()?.join(OsStr::from_bytes(line.strip_prefix(b"gitdir: ")?));
    }
    None
}

/// The directory that holds the objects and the configuration of a git directory.
pub(super) fn common_directory(git: &Path) -> PathBuf {
    let common = read_line(&git.join("commondir"));
    let common = common.map(|line| git.join(OsStr::from_bytes(&line)));
    common.and_then(|common| fs::canonicalize(common).ok()).unwrap_or_else(|| git.to_owned())
}

/// The content of a file that holds one path. As for git, any number of line ends may follow, and a NUL ends it.
fn read_line(path: &Path) -> Option<Vec<u8>> {
    let mut line = read_regular(path, MAX_CONTENT_BYTES).ok()?;
    let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    let nul = line.iter().position(|byte| *byte == 0);
    line.truncate(nul.unwrap_or(end + 1).min(end + 1));
    Some(line)
}

/// Whether a pack's index lists an object.
fn has_object(index: &File, id: &GitObjectId) -> bool {
    let read = |offset: u64, buffer: &mut [u8]| index.read_exact_at(buffer, offset).ok();
    let count = |at: u64| {
        let mut bytes = [0; 4];
        read(INDEX_HEADER.len() as u64 + at * 4, &mut bytes).map(|()| u64::from(u32::from_be_bytes(bytes)))
    };
    let mut header = [0; 8];
    if read(0, &mut header).is_none() || header != INDEX_HEADER {
        return false;
    }
    let first = u64::from(id[0]);
    let low = if first == 0 { Some(0) } else { count(first - 1) };
    let (Some(mut low), Some(mut high)) = (low, count(first)) else { return false };
    while low < high {
        let middle = low + (high - low) / 2;
        let mut listed: GitObjectId = [0; 20];
        let offset = INDEX_HEADER.len() as u64 + FANOUT_BYTES + middle * listed.len() as u64;
        if read(offset, &mut listed).is_none() {
            return false;
        }
        match listed.cmp(id) {
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    false
}

/// SHA-1, which git uses as an object's name. Making a file with the SHA-1 of a given one is not feasible.
fn sha1(message: &[u8]) -> GitObjectId {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in padded.as_chunks::<64>().0 {
        let mut words = [0_u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        for at in 16..80 {
            words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
        }
        let mut mixed = state;
        for (at, word) in words.iter().enumerate() {
            let [first, second, third, fourth, fifth] = mixed;
            let (choice, constant) = match at {
                0..20 => ((second & third) | (!second & fourth), 0x5a82_7999),
                20..40 => (second ^ third ^ fourth, 0x6ed9_eba1),
                40..60 => ((second & third) | (second & fourth) | (third & fourth), 0x8f1b_bcdc),
                _ => (second ^ third ^ fourth, 0xca62_c1d6_u32),
            };
            let sum =
                [choice, fifth, constant, *word].into_iter().fold(first.rotate_left(5), u32::wrapping_add);
            mixed = [sum, first, second.rotate_left(30), third, fourth];
        }
        for (sum, value) in state.iter_mut().zip(mixed) {
            *sum = sum.wrapping_add(value);
        }
    }
    let mut id = [0; 20];
    for (bytes, word) in id.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    id
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(directory: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn objects_are_found_as_git_stores_them() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        git(&root, &["init", "-q"]);
        let contents: Vec<Vec<u8>> = (0..200_usize).map(|length| vec![b'x'; length * 3]).collect();
        for (at, content) in contents.iter().enumerate() {
            fs::write(root.join(at.to_string()), content).unwrap();
        }
        git(&root, &["add", "."]);
        for content in &contents {
            assert_eq!(object_files(&root, &blob_id(content)).len(), 1);
        }
        assert_eq!(git(&root, &["hash-object", "7"]).trim(), {
            let id = blob_id(&contents[7]);
            id.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        });
        git(&root, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]);
        git(&root, &["gc", "-q"]);
        git(&root, &["worktree", "add", "-q", "sub/tree"]);
        for content in &contents {
            let files = object_files(&root.join("sub/tree"), &blob_id(content));
            assert!(files.len() == 1 && files[0].path.extension().is_some(), "{files:?}");
        }
        assert!(object_files(&root, &blob_id(b"another")).is_empty());
    }
}
