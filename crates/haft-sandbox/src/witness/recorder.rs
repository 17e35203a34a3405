//! What stood at each path before a command's first touch, and what stands there when it is done.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::{Change, FileId, Node, ToolError};
use rustix::fs::{Dir, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::image::{self, Bytes, Image};
use super::paths::{Spot, where_is};
use super::survey;
use super::twins::{self, Twin};
use haft_tool::{FileContent, Record};

/// More changes than this are not listed.
const MOST_CHANGES: usize = 2_000_000;

/// What stood at a path.
struct Stood {
    node: Node,
    /// Which file it was, if it was one.
    file: Option<FileId>,
}

/// The witness's notes on one command.
pub(super) struct Recorder {
    journal: Arc<dyn Record>,
    /// What stood at a path before it was first touched. What lies below a directory that was not there is not in it.
    /// All are canonical, and their words are faster compared than their parts.
    touched: HashMap<OsString, Stood>,
    /// What stood in files with several names, by file: one name's change is all of theirs.
    linked: HashMap<FileId, Node>,
    /// The same before the command, whatever has moved since.
    twins: HashMap<FileId, Twin>,
    /// Those of them that the command may have changed, under whatever name.
    altered: HashSet<FileId>,
    /// Files that were opened for writing; some may be written still.
    opened: Vec<PathBuf>,
    /// Directories that the command made before the last move.
    made: Vec<PathBuf>,
    /// Where directories stood that were moved away.
    moved_away: Vec<PathBuf>,
    changes: Vec<Change>,
    losses: Vec<String>,
    error: Option<ToolError>,
}

impl Recorder {
    pub(super) fn new(journal: Arc<dyn Record>) -> Self {
        Self {
            journal,
            touched: HashMap::new(),
            linked: HashMap::new(),
            twins: HashMap::new(),
            altered: HashSet::new(),
            opened: Vec::new(),
            made: Vec::new(),
            moved_away: Vec::new(),
            changes: Vec::new(),
            losses: Vec::new(),
            error: None,
        }
    }

    /// Whether the command itself made the directory at `path`, or one above it.
    pub(super) fn is_new(&self, path: &Path) -> bool {
        if self.touched.is_empty() {
            return false;
        }
        // From the top: what is new is so from somewhere near the workspace on, however deep it goes.
        let above: Vec<&Path> = path.ancestors().collect();
        let absent = |above: &Path| {
            self.touched.get(above.as_os_str()).is_some_and(|stood| stood.node == Node::Absent)
        };
        above.into_iter().rev().any(absent)
    }

    /// Whether the command made the directory at `path` where there never was one.
    pub(super) fn is_made(&self, path: &Path) -> bool {
        let made = self.made.iter().any(|made| path.starts_with(made)) || self.is_new(path);
        made && !self.moved_away.iter().any(|away| path.starts_with(away))
    }

    /// Whether nothing stood at `path`, as far as the command touched it.
    pub(super) fn was_never(&self, path: &Path) -> bool {
        self.touched.get(path.as_os_str()).is_none_or(|stood| stood.node == Node::Absent)
            && !self.moved_away.iter().any(|away| path.starts_with(away))
    }

    /// Keeps what stands at a spot, before the command changes it for the first time.
    pub(super) fn touch(&mut self, spot: &Spot) -> Result<(), Errno> {
        if self.knows(spot) {
            return Ok(());
        }
        let Image { mut node, mut bytes, file } = image::look(&spot.dir.fd, &spot.name)?;
        if let Node::File(node) = &mut node {
            // Its other names may have gone before.
            node.linked = node.linked.or(file.filter(|file| self.twins.contains_key(file)));
        }
        if let Some(file) = node.linked() {
            if let Some(before) = self.linked.get(&file) {
                // It was touched under another name already, and its bytes are kept.
                (node, bytes) = (before.clone(), Bytes::None);
            } else {
                self.linked.insert(file, node.clone());
            }
            self.twins.entry(file).or_insert_with(|| Twin {
                before: node.clone(),
                names: spot.stat().map_or(0, |stat| stat.st_nlink),
            });
        }
        self.keep(spot.path(), Image { node, bytes, file })
    }

    /// The same, where nothing stands.
    pub(super) fn touch_absent(&mut self, spot: &Spot) -> Result<(), Errno> {
        if self.knows(spot) {
            return Ok(());
        }
        self.keep(spot.path(), Node::Absent.into())
    }

    /// Notes what comes with a new directory where something else stood before: nobody will tell of each entry.
    pub(super) fn arrives(&mut self, from: &Spot, to: &Spot) -> Result<(), Errno> {
        if self.is_new(to.path()) {
            return Ok(());
        }
        let dir = rustix::fs::openat(&from.dir.fd, &from.name, survey::DIRECTORY, Mode::empty())?;
        for entry in Dir::read_from(&dir)?.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let path = to.path().join(name);
            if name != "." && name != ".." && !self.touched.contains_key(path.as_os_str()) {
                self.keep(&path, Node::Absent.into())?;
            }
        }
        Ok(())
    }

    /// Whether it is known what stood at a spot before the command.
    pub(super) fn knows(&self, spot: &Spot) -> bool {
        spot.dir.new || self.touched.contains_key(spot.path().as_os_str())
    }

    /// Notes that a file is open for writing.
    pub(super) fn opened(&mut self, spot: &Spot) {
        self.opened.push(spot.path().to_owned());
    }

    /// Notes that what `stat` was taken of is about to change, under all its names.
    pub(super) fn alters(&mut self, stat: &Stat) {
        if stat.st_nlink > 1 {
            self.altered.insert((stat.st_dev, stat.st_ino));
        }
    }

    /// Says that something will not come back.
    pub(super) fn lost(&mut self, why: String) {
        self.losses.push(why);
    }

    /// Notes that a directory that was there before is about to be moved: what was noted so far is under its old name.
    pub(super) fn before_move(&mut self, from: &Path, to: &Path) -> Result<(), Errno> {
        self.seal();
        self.journal.witness_move(from, to).map_err(|error| {
            self.error.get_or_insert(error);
            Errno::IO
        })
    }

    /// Notes that it stayed where it was after all.
    pub(super) fn stayed(&mut self) {
        if let Err(error) = self.journal.cancel_move() {
            self.error.get_or_insert(error);
        }
    }

    /// Notes that it was moved. Files that may still be written are noted anew, under their new name.
    pub(super) fn moved(&mut self, from: &Path, to: &Path, mode: u32) {
        self.moved_away.push(from.to_owned());
        self.changes.push(Change {
            moved_to: Some(to.to_owned()),
            ..Change::new(from, Node::Dir { mode }, Node::Absent)
        });
        for path in std::mem::take(&mut self.opened) {
            let path = match path.strip_prefix(from) {
                Ok(rest) => to.join(rest),
                Err(_) => path,
            };
            if is_being_written(&path) {
                self.note_again(&path);
                self.opened.push(path);
            }
        }
    }

    fn note_again(&mut self, path: &Path) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Ok(dir) = open_dir(parent) else { return };
        let Ok(image) = image::look(&dir, name) else { return };
        // What could not be kept is told when all is done.
        let _ = self.keep(path, image);
    }

    /// Keeps what stands at `path`; a change that could not be taken back is not made.
    fn keep(&mut self, path: &Path, Image { node, mut bytes, file }: Image) -> Result<(), Errno> {
        let content = match &mut bytes {
            Bytes::None => FileContent::None,
            Bytes::Small(bytes) => FileContent::Bytes(bytes),
            Bytes::Large(file) => FileContent::Reader(file),
            Bytes::TooMany => {
                self.losses.push(format!("{} was too large to be kept", path.display()));
                FileContent::None
            }
        };
        if let Err(error) = self.journal.witness(path, &node, content) {
            self.error.get_or_insert(error);
            return Err(Errno::IO);
        }
        self.touched.insert(path.as_os_str().to_owned(), Stood { node, file });
        Ok(())
    }

    /// Compares what stood at each touched path with what stands there now.
    fn seal(&mut self) {
        let mut touched: Vec<_> = std::mem::take(&mut self.touched).into_iter().collect();
        self.linked.clear();
        touched.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut parents = Parents::default();
        for (path, before) in touched {
            let path = PathBuf::from(path);
            let Some((parent, name)) = path.parent().zip(path.file_name()) else { continue };
            let after = match parents.open(parent) {
                Some(dir) => image::look(dir, name).map(|Image { node, file, .. }| Stood { node, file }),
                None => Ok(Stood { node: Node::Absent, file: None }),
            };
            self.settle(path, before, after);
        }
    }

    fn settle(&mut self, path: PathBuf, before: Stood, after: Result<Stood, Errno>) {
        let Ok(after) = after else {
            self.losses.push(format!("{} can no longer be looked at", path.display()));
            return;
        };
        let several =
            [&before.node, &after.node].map(|node| node.as_file().is_some_and(|file| file.linked.is_some()));
        // Another file can show the same bytes; then it may be changed apart from its old names, or with its new ones.
        let other = before.file.is_some() && after.file.is_some() && before.file != after.file;
        let is_another = other && several.contains(&true);
        let (before, after) = (before.node, after.node);
        let made = before == Node::Absent && matches!(after, Node::Dir { .. });
        if made
            && let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && let Ok(dir) = open_dir(parent)
        {
            self.inside(&dir, name, &path);
            self.made.push(path.clone());
        }
        if is_another || !before.fully_same_as(&after) {
            self.changes.push(Change::new(path, before, after));
        }
    }

    /// Lists what was made below a new directory.
    fn inside(&mut self, dir: &OwnedFd, name: &OsStr, path: &Path) {
        let made = survey::survey(dir, name, path);
        self.losses.extend(made.losses);
        let room = MOST_CHANGES.saturating_sub(self.changes.len());
        if made.found.len() > room {
            self.losses.push(format!("{} entries were too many to list", made.found.len() - room));
        }
        let created = |(path, after)| Change::new(path, Node::Absent, after);
        self.changes.extend(made.found.into_iter().take(room).map(created));
    }

    /// What the command changed in `roots`, and what will not come back.
    pub(super) fn finish(mut self, roots: &[PathBuf]) -> Result<(Vec<Change>, Vec<String>), ToolError> {
        self.seal();
        self.twins.retain(|file, _| self.altered.contains(file));
        let (more, lost) = twins::unnamed(&self.changes, &self.twins, roots);
        self.changes.extend(more);
        let keep = |name: PathBuf| format!("{} had other names, which keep what was written", name.display());
        self.losses.extend(lost.into_iter().map(keep));
        match self.error {
            Some(error) => Err(error),
            None => Ok((self.changes, self.losses)),
        }
    }
}

/// The directory that was asked for last: touched paths come sorted.
#[derive(Default)]
struct Parents {
    last: Option<(PathBuf, OwnedFd)>,
}

impl Parents {
    fn open(&mut self, path: &Path) -> Option<&OwnedFd> {
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            self.last = open_dir(path).ok().map(|fd| (path.to_owned(), fd));
        }
        self.last.as_ref().map(|(_, fd)| fd)
    }
}

/// Opens the directory at exactly this path; one that a link leads to is another.
fn open_dir(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty())?;
    if where_is(&fd)? == path { Ok(fd) } else { Err(Errno::NOENT) }
}

/// Whether somebody has the file open for writing: then the kernel gives no lease to read it undisturbed.
fn is_being_written(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(fd) = rustix::fs::open(path, flags, Mode::empty()) else { return true };
    !undisturbed(&fd)
}

/// Whether nobody has the file open for writing.
#[expect(unsafe_code, reason = "leases have no safe wrapper")]
pub(super) fn undisturbed(fd: &OwnedFd) -> bool {
    // SAFETY: plain numbers; the lease ends with the descriptor.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) == 0 }
}
