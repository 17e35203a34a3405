//! Commands that change nothing: their changes go to the upper layer of an overlay, are listed and thrown away.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use haft_tool::{
    Change, Denial, DirectoryEvent, FileContent, Hash, Intent, Node, PreviewedChange, Record, ToolError,
};

/// Further changes are counted, not listed.
const MAX_LISTED_CHANGES: usize = 10_000;
/// The attribute of a directory that hides everything below it in the lower layer.
const OPAQUE_ATTRIBUTE: &str = "user.overlay.opaque";
/// The attributes that the kernel uses in the upper layer.
const ATTRIBUTE_PREFIX: &str = "user.overlay.";

/// A directory whose changes go elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OverlaidDir {
    /// The directory, where the command also finds it.
    pub(crate) lower: PathBuf,
    /// What was changed.
    pub(crate) upper: PathBuf,
    /// The kernel's own directory, on the same file system as `upper`.
    pub(crate) work: PathBuf,
}

impl OverlaidDir {
    /// The options of the mount. The kernel separates them by commas, and layers by colons.
    pub(super) fn mount_options(&self) -> Vec<u8> {
        let escaped = |path: &Path| {
            let mut escaped = Vec::new();
            for &byte in path.as_os_str().as_encoded_bytes() {
                if matches!(byte, b'\\' | b',' | b':') {
                    escaped.push(b'\\');
                }
                escaped.push(byte);
            }
            escaped
        };
        let mut options = b"userxattr".to_vec();
        for (name, path) in [("lowerdir", &self.lower), ("upperdir", &self.upper), ("workdir", &self.work)] {
            options.extend(format!(",{name}=").into_bytes());
            options.extend(escaped(path));
        }
        options
    }

    /// What the commands would have changed.
    pub(crate) fn changes(&self) -> io::Result<Vec<PreviewedChange>> {
        let mut changes = Vec::new();
        let mut todo = vec![PathBuf::new()];
        while let Some(directory) = todo.pop() {
            let (upper, lower) = (self.upper.join(&directory), self.lower.join(&directory));
            let mut names = names_in(&upper)?;
            if is_opaque(&upper) {
                names.extend(names_in(&lower).unwrap_or_default());
            }
            for name in names {
                let path = directory.join(name);
                let before = node_at(&self.lower.join(&path))?;
                let after = self.node_above(&path)?;
                if matches!(after, Node::Dir(_)) {
                    todo.push(path.clone());
                }
                if !before.fully_same_as(&after) && changes.len() < MAX_LISTED_CHANGES {
                    let content = self.upper.join(&path);
                    changes.push(PreviewedChange { path: self.lower.join(path), before, after, content });
                }
            }
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    /// The state of an entry in the upper layer, without the kernel's own marks.
    fn node_above(&self, path: &Path) -> io::Result<Node> {
        let upper = self.upper.join(path);
        // A character device 0/0 stands for a removed entry.
        let is_removed = |meta: fs::Metadata| meta.file_type().is_char_device() && meta.rdev() == 0;
        if fs::symlink_metadata(&upper).is_ok_and(is_removed) {
            return Ok(Node::Absent);
        }
        let mut node = node_at(&upper)?;
        let xattrs = match &mut node {
            Node::File(file) => &mut file.xattrs,
            Node::Dir(directory) => &mut directory.xattrs,
            _ => return Ok(node),
        };
        xattrs.retain(|(name, _)| !name.starts_with(ATTRIBUTE_PREFIX));
        Ok(node)
    }
}

fn node_at(path: &Path) -> io::Result<Node> {
    let mut node = haft_files::capture(rustix::fs::CWD, path.as_os_str())?.node;
    if let Node::File(file) = &mut node {
        // A copy in the upper layer has no other names.
        file.linked = None;
    }
    Ok(node)
}

fn names_in(directory: &Path) -> io::Result<BTreeSet<OsString>> {
    fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

fn is_opaque(directory: &Path) -> bool {
    let mut value = [0; 1];
    rustix::fs::lgetxattr(directory, OPAQUE_ATTRIBUTE, &mut value[..]).is_ok_and(|length| length == 1)
        && value == *b"y"
}

/// The record of a command that changes nothing.
pub(crate) struct DiscardingRecord;

impl Record for DiscardingRecord {
    fn intend(&self, _intents: &mut [Intent<'_>]) -> Result<(), ToolError> {
        Ok(())
    }

    fn changed(&self, _change: Change) {}

    fn not_reversible(&self, _reason: String) {}

    fn witness(
        &self,
        _path: &Path,
        _node: &Node,
        _content: FileContent<'_>,
    ) -> Result<Option<(Hash, u64)>, ToolError> {
        Ok(None)
    }

    fn witness_directory(&self, _event: DirectoryEvent<'_>) -> Result<(), ToolError> {
        Ok(())
    }

    fn cancel_directory(&self) -> Result<(), ToolError> {
        Ok(())
    }

    fn witnessed(&self, _changes: Vec<Change>) {}

    fn enforced(&self, _how: String) {}

    fn refused(&self, _denials: &[Denial]) {}
}
