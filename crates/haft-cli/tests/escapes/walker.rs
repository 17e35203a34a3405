//! What stands in a tree, looked at without any help of Haft.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// All that can be seen of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    kind: &'static str,
    mode: u32,
    owner: (u32, u32),
    size: u64,
    bytes: u64,
    target: Option<PathBuf>,
    /// The first path of the tree that shows the same file, where there are several.
    same_as: Option<PathBuf>,
    links: u64,
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
    modified: (i64, i64),
}

impl Seen {
    /// Forgets which names are one file.
    pub(crate) fn forget_names(&mut self) {
        (self.same_as, self.links) = (None, 0);
    }
}

/// A tree, by paths relative to its root.
pub(crate) type Tree = BTreeMap<PathBuf, Seen>;

/// Looks at everything below `root`, and at `root` itself, but not at what `skip` names.
pub(crate) fn walk(root: &Path, skip: &[&str]) -> Tree {
    let (mut tree, mut files) = (Tree::new(), HashMap::new());
    visit(root, Path::new(""), skip, &mut tree, &mut files);
    tree
}

/// The same without what an undo does not promise to bring back: times.
pub(crate) fn timeless(root: &Path, skip: &[&str]) -> Tree {
    let mut tree = walk(root, skip);
    for seen in tree.values_mut() {
        seen.modified = (0, 0);
        // A directory's size and links belong to the file system.
        if seen.kind == "directory" {
            (seen.size, seen.links) = (0, 0);
        }
    }
    tree
}

/// What differs, one line each; at most a dozen.
pub(crate) fn differences(before: &Tree, after: &Tree) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, old) in before {
        match after.get(path) {
            None => lines.push(format!("{} is gone", path.display())),
            Some(new) if new != old => lines.push(format!("{}: {}", path.display(), difference(old, new))),
            Some(_) => {}
        }
    }
    for path in after.keys().filter(|path| !before.contains_key(*path)) {
        lines.push(format!("{} is new", path.display()));
    }
    let more = lines.len().saturating_sub(12);
    lines.truncate(12);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

fn difference(old: &Seen, new: &Seen) -> String {
    let mut words = Vec::new();
    let mut tell = |differs: bool, text: String| {
        if differs {
            words.push(text);
        }
    };
    tell(old.kind != new.kind, format!("{} became {}", old.kind, new.kind));
    tell(old.mode != new.mode, format!("mode {:o} became {:o}", old.mode, new.mode));
    tell(old.owner != new.owner, format!("owner {:?} became {:?}", old.owner, new.owner));
    tell(old.bytes != new.bytes, format!("other bytes ({} became {})", old.size, new.size));
    tell(old.target != new.target, format!("target {:?} became {:?}", old.target, new.target));
    tell(old.same_as != new.same_as, format!("same file as {:?} became {:?}", old.same_as, new.same_as));
    tell(old.links != new.links, format!("{} links became {}", old.links, new.links));
    tell(old.attributes != new.attributes, "other attributes".to_owned());
    tell(old.modified != new.modified, "another time".to_owned());
    tell(old.size != new.size, format!("size {} became {}", old.size, new.size));
    words.join(", ")
}

fn visit(root: &Path, at: &Path, skip: &[&str], tree: &mut Tree, files: &mut HashMap<(u64, u64), PathBuf>) {
    if skip.iter().any(|skipped| at == Path::new(skipped)) {
        return;
    }
    let path = if at == Path::new("") { root.to_owned() } else { root.join(at) };
    let Ok(metadata) = fs::symlink_metadata(&path) else { return };
    let kind = metadata.file_type();
    let word = match () {
        () if kind.is_dir() => "directory",
        () if kind.is_symlink() => "link",
        () if kind.is_file() => "file",
        () if kind.is_fifo() => "fifo",
        () if kind.is_socket() => "socket",
        () => "device",
    };
    let several = kind.is_file() && metadata.nlink() > 1;
    let first = files.entry((metadata.dev(), metadata.ino())).or_insert_with(|| at.to_owned());
    let seen = Seen {
        kind: word,
        mode: metadata.mode() & 0o7777,
        owner: (metadata.uid(), metadata.gid()),
        size: metadata.len(),
        bytes: if kind.is_file() { digest(&path) } else { 0 },
        target: if kind.is_symlink() { fs::read_link(&path).ok() } else { None },
        same_as: several.then(|| first.clone()).filter(|first| first != at),
        links: metadata.nlink(),
        attributes: attributes(&path),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    };
    tree.insert(at.to_owned(), seen);
    if kind.is_dir() {
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            visit(root, &at.join(entry.file_name()), skip, tree, files);
        }
    }
}

fn digest(path: &Path) -> u64 {
    let Ok(mut file) = fs::File::open(path) else { return 1 };
    let (mut hasher, mut buffer) = (DefaultHasher::new(), vec![0; 1 << 16]);
    while let Ok(read @ 1..) = file.read(&mut buffer) {
        hasher.write(&buffer[..read]);
    }
    hasher.finish()
}

/// The extended attributes that a user may set, which std does not tell.
#[expect(unsafe_code, reason = "std knows no extended attributes")]
fn attributes(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    let mut names = vec![0_u8; 4096];
    // SAFETY: the path ends with a NUL byte and the buffer is as long as said.
    let size = unsafe { libc::llistxattr(path.as_ptr(), names.as_mut_ptr().cast(), names.len()) };
    names.truncate(usize::try_from(size).unwrap_or(0));
    let mut found = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        let mut value = vec![0_u8; 4096];
        let text = CString::new(name).unwrap();
        // SAFETY: both texts end with a NUL byte and the buffer is as long as said.
        let size =
            unsafe { libc::lgetxattr(path.as_ptr(), text.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
        value.truncate(usize::try_from(size).unwrap_or(0));
        found.push((name.to_vec(), value));
    }
    found.sort();
    found
}
