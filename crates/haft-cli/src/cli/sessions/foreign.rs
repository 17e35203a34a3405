//! The transcripts of Claude Code and Codex on this machine, which are only read.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use clap::ValueEnum;
use haft_compat::transcripts::{
    Transcript, TranscriptSource, claude_project_name, read_claude_transcript, read_codex_transcript,
};
use haft_files::{changed_at, names_in, open_regular, read_named, real_named};
use haft_tool::{ErrorKind, ToolError};

/// The largest transcript that is read.
const MAX_TRANSCRIPT_BYTES: u64 = 256 << 20;
/// What is read of a transcript for a list.
const MAX_HEAD_BYTES: u64 = 256 << 10;
/// Names of one directory that are looked at.
const MAX_NAMES_COUNT: usize = 100_000;
/// The fewest characters of an id by which a transcript is found.
const MIN_ID_CHARS: usize = 4;
/// What the names of Codex's transcripts begin with; a time and the id follow.
const ROLLOUT: &str = "rollout-";
const UUID_CHARS: usize = 36;

/// An agent whose transcripts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ForeignAgent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

/// A transcript of another agent.
#[derive(Debug, Clone)]
pub(in crate::cli) struct ForeignFile {
    agent: ForeignAgent,
    /// The session's id, from the name of the file.
    pub(super) id: String,
    pub(super) path: PathBuf,
    /// In milliseconds since 1970.
    pub(super) changed_at: u64,
}

/// The transcripts of an agent, the newest first.
pub(in crate::cli) struct ForeignFiles {
    root: PathBuf,
    files: Vec<ForeignFile>,
    /// Only those of this folder, as far as that is not known from where the file is.
    folder: Option<PathBuf>,
}

impl ForeignAgent {
    pub(super) const fn source(self) -> TranscriptSource {
        match self {
            Self::Claude => TranscriptSource::Claude,
            Self::Codex => TranscriptSource::Codex,
        }
    }

    /// The directory with the agent's transcripts.
    fn root(self) -> Result<PathBuf, ToolError> {
        let variable =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let (own, folder, below) = match self {
            Self::Claude => ("CLAUDE_CONFIG_DIR", ".claude", "projects"),
            Self::Codex => ("CODEX_HOME", ".codex", "sessions"),
        };
        let home = || Some(std::env::home_dir().filter(|home| home.is_absolute())?.join(folder));
        let base = variable(own).or_else(home);
        let base =
            base.ok_or_else(|| ToolError::invalid_arguments(format!("Neither {own} nor HOME is set.")))?;
        Ok(base.join(below))
    }

    fn read(self, bytes: &[u8]) -> Transcript {
        match self {
            Self::Claude => read_claude_transcript(bytes),
            Self::Codex => read_codex_transcript(bytes),
        }
    }
}

impl ForeignFiles {
    /// The agent's transcripts, of this folder or of all.
    pub(super) fn find(agent: ForeignAgent, folder: Option<&Path>) -> Result<Self, ToolError> {
        let root = agent.root()?;
        let folder = folder.map(|folder| real_named(folder).unwrap_or_else(|_| folder.to_owned()));
        let mut files = match agent {
            ForeignAgent::Claude => claude_files(&root, folder.as_deref()),
            ForeignAgent::Codex => codex_files(&root),
        };
        files.sort_by(|a, b| (b.changed_at, &b.id).cmp(&(a.changed_at, &a.id)));
        Ok(Self { root, files, folder })
    }

    /// The transcript of Claude Code with exactly this id: of this folder, else of any.
    pub(in crate::cli) fn claude_session(id: &str, folder: &Path) -> Option<ForeignFile> {
        let id = id.to_ascii_lowercase();
        let with_id = |folder: Option<&Path>| {
            let found = Self::find(ForeignAgent::Claude, folder).ok().filter(|_| is_uuid(&id))?;
            found.files.into_iter().find(|file| file.id == id)
        };
        with_id(Some(folder)).or_else(|| with_id(None))
    }

    /// Those of the folder.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ForeignFile> {
        let is_here = |file: &&ForeignFile| match &self.folder {
            Some(folder) if file.agent == ForeignAgent::Codex => {
                file.head().workspace.is_some_and(|workspace| Path::new(&workspace) == folder)
            }
            _ => true,
        };
        self.files.iter().filter(is_here)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The one whose id is or begins with this.
    pub(super) fn with_id(&self, id: &str) -> Result<&ForeignFile, ToolError> {
        let id = id.trim().to_ascii_lowercase();
        let mut found = self.files.iter().filter(|file| file.id.starts_with(&id) && id.len() >= MIN_ID_CHARS);
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            (Some(first), Some(_)) if first.id == id => Ok(first),
            (Some(_), Some(_)) => Err(ToolError::invalid_arguments(format!(
                "Several transcripts start with {id:?}. Type more characters of the id."
            ))),
            (None, _) => Err(ToolError::new(
                ErrorKind::NotFound,
                format!(
                    "There is no transcript {id:?} in {}. `haft sessions list --from` lists them.",
                    self.root.display()
                ),
            )),
        }
    }
}

impl ForeignFile {
    /// What the beginning of the file says.
    pub(super) fn head(&self) -> Transcript {
        let mut bytes = Vec::new();
        if let Ok(file) = open_regular(&self.path) {
            use std::io::Read as _;
            let read = file.take(MAX_HEAD_BYTES).read_to_end(&mut bytes);
            if let Err(error) = read {
                tracing::debug!(%error, path = %self.path.display(), "a transcript cannot be read");
            }
        }
        // The last line may be cut.
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        self.agent.read(bytes.get(..end).unwrap_or_default())
    }

    /// The whole transcript.
    pub(in crate::cli) fn read(&self) -> Result<Transcript, ToolError> {
        let mut transcript = self.agent.read(&read_named(&self.path, MAX_TRANSCRIPT_BYTES)?);
        transcript.session.clone_from(&self.id);
        Ok(transcript)
    }
}

fn claude_files(root: &Path, folder: Option<&Path>) -> Vec<ForeignFile> {
    let projects: Vec<PathBuf> = match folder {
        Some(folder) => claude_project_name(&folder.display().to_string())
            .map(|name| root.join(name))
            .into_iter()
            .collect(),
        None => names_in(root, MAX_NAMES_COUNT).into_iter().map(|name| root.join(name)).collect(),
    };
    let file = |project: &PathBuf, name: &Path| {
        let id = name.file_stem()?.to_str()?.to_owned();
        let is_transcript = is_uuid(&id) && name.extension().is_some_and(|extension| extension == "jsonl");
        is_transcript.then(|| ForeignFile::at(ForeignAgent::Claude, id, project.join(name)))
    };
    let files = |project: &PathBuf| {
        let names = names_in(project, MAX_NAMES_COUNT);
        names.iter().filter_map(|name| file(project, Path::new(name))).collect::<Vec<_>>()
    };
    projects.iter().flat_map(files).collect()
}

/// The files below `YYYY/MM/DD`.
fn codex_files(root: &Path) -> Vec<ForeignFile> {
    let below = |directories: Vec<PathBuf>| -> Vec<PathBuf> {
        let inside = |directory: PathBuf| {
            let names = names_in(&directory, MAX_NAMES_COUNT).into_iter();
            names.map(|name| directory.join(name)).collect::<Vec<_>>()
        };
        directories.into_iter().flat_map(inside).collect()
    };
    let paths = (0..4).fold(vec![root.to_owned()], |directories, _| below(directories));
    let file = |path: PathBuf| {
        let stem = path.file_stem()?.to_str()?.strip_prefix(ROLLOUT)?;
        let id = stem.get(stem.len().checked_sub(UUID_CHARS)?..)?.to_owned();
        let is_rollout = is_uuid(&id) && path.extension().is_some_and(|extension| extension == "jsonl");
        is_rollout.then(|| ForeignFile::at(ForeignAgent::Codex, id, path))
    };
    paths.into_iter().filter_map(file).collect()
}

impl ForeignFile {
    fn at(agent: ForeignAgent, id: String, path: PathBuf) -> Self {
        let since = changed_at(&path).and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let changed_at = since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
        Self { agent, id, path, changed_at }
    }
}

/// Whether `text` has the form of a UUID, in lower case.
pub(in crate::cli) fn is_uuid(text: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    };
    text.len() == UUID_CHARS && text.bytes().enumerate().all(is_right)
}
