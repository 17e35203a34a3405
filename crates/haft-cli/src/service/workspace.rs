//! Which directory the calls of a client work in.
//!
//! A directory that the user named is used as it is. Otherwise it is the client's first root, or the current directory. Some
//! clients start servers in the user's home or in `/`, which are no workspaces: then the first absolute path in a call decides,
//! by the project that it lies in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_files::{Root, find_upwards, id_of, real_named};
use haft_mcp::serve::{ClientRequest, RequestContext};
use haft_tool::Value;
use serde_json::json;
use url::Url;

/// How long a client may take to list its roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(5);
/// Further roots that are added to the workspace.
const MAX_ROOTS: usize = 16;
/// What a project has in its uppermost directory.
const PROJECT_MARKS: [&str; 2] = [".git", "haft.toml"];

/// Where no project is found by a path.
const SYSTEM_DIRECTORIES: [&str; 14] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys",
    "/usr", "/var",
];

/// Where homes are; hidden directories below them are no workspaces.
const HOMES: [&str; 3] = ["/home", "/root", "/Users"];

/// A workspace that was decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientWorkspace {
    pub(crate) directory: PathBuf,
    /// Further directories that calls may change.
    pub(crate) more: Vec<PathBuf>,
}

impl From<PathBuf> for ClientWorkspace {
    fn from(directory: PathBuf) -> Self {
        Self { directory, more: Vec::new() }
    }
}

/// What decides on the workspace of a client.
pub(crate) struct WorkspaceChoice {
    /// The directory that the user named.
    pub(crate) given: Option<PathBuf>,
    /// The directory that the server was started in.
    pub(crate) current: PathBuf,
    /// Whether the paths of the client's roots are paths of this machine.
    pub(crate) roots_are_local: bool,
    /// The user's home and what calls must not change; a workspace contains none of them.
    pub(crate) outside: Vec<PathBuf>,
}

impl WorkspaceChoice {
    /// The workspace, as far as it is known without the client.
    pub(crate) fn at_start(&self) -> Option<ClientWorkspace> {
        match &self.given {
            Some(given) => Some(given.clone().into()),
            None => self.usable(&self.current).map(ClientWorkspace::from),
        }
    }

    /// The workspace of a client; `None` if it is still open. `arguments` are those of a call.
    pub(super) fn for_client(&self, context: &RequestContext, arguments: &Value) -> Option<ClientWorkspace> {
        let start = self.at_start();
        if self.given.is_some() {
            return start;
        }
        // A stateless client would have to send its request again, which the current directory makes unnecessary.
        let asks = self.uses_roots(context.client_capabilities())
            && (start.is_none() || !context.version().is_stateless());
        let roots = if asks { self.of_roots(context) } else { None };
        roots.or(start).or_else(|| self.of_arguments(arguments))
    }

    /// Whether a client with these capabilities has roots that count.
    pub(super) fn uses_roots(&self, client_capabilities: &Value) -> bool {
        self.given.is_none()
            && self.roots_are_local
            && client_capabilities.get("roots").is_some_and(Value::is_object)
    }

    fn of_roots(&self, context: &RequestContext) -> Option<ClientWorkspace> {
        let request = ClientRequest { key: "roots".to_owned(), method: "roots/list", params: json!({}) };
        let answer = context.request_client_within(&[request], ROOTS_TIMEOUT).ok()?.pop()?;
        let roots = answer.get("roots")?.as_array()?.iter();
        let path = |root: &Value| Url::parse(root.get("uri")?.as_str()?).ok()?.to_file_path().ok();
        let mut usable = roots.filter_map(path).filter_map(|path| self.usable(&path));
        Some(ClientWorkspace { directory: usable.next()?, more: usable.take(MAX_ROOTS).collect() })
    }

    /// The project of the first absolute path in a call.
    fn of_arguments(&self, arguments: &Value) -> Option<ClientWorkspace> {
        let is_path = |name: &str| name.contains("path") || matches!(name, "cwd" | "workdir" | "directory");
        let paths = arguments.as_object()?.iter().filter(|(name, _)| is_path(name));
        let mut paths = paths.filter_map(|(_, value)| value.as_str()).map(Path::new);
        paths
            .find(|path| path.is_absolute())
            .and_then(|path| self.project_of(path))
            .map(ClientWorkspace::from)
    }

    /// The project of the user's that a path lies in. What is in hidden directories, in those of the system or directly in `/`
    /// is none, even if it is a repository: what programs start from there must not become writable because a model named it.
    fn project_of(&self, path: &Path) -> Option<PathBuf> {
        let real = real_named(path).ok()?;
        let found = PROJECT_MARKS.iter().filter_map(|mark| find_upwards(&real, mark));
        let top = found.filter(|found| found.is_own).map(|found| found.directory);
        let top = top.max_by_key(|top| top.as_os_str().len())?;
        let is_hidden = |above: &Path| {
            let below = top.strip_prefix(above).unwrap_or(Path::new(""));
            below.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."))
        };
        let own: Vec<PathBuf> = self.outside.iter().filter_map(|path| real_named(path).ok()).collect();
        let is_hidden = own.iter().map(PathBuf::as_path).chain(HOMES.map(Path::new)).any(is_hidden);
        let is_system = SYSTEM_DIRECTORIES.iter().any(|system| top.starts_with(system));
        let has_mark = PROJECT_MARKS
            .iter()
            .any(|mark| real_named(&top.join(mark)).is_ok_and(|mark| id_of(&mark).is_some()));
        let cache =
            std::env::var_os("HAFT_CACHE").map(PathBuf::from).and_then(|cache| real_named(&cache).ok());
        if !has_mark
            || cache.is_some_and(|cache| top.starts_with(cache))
            || is_hidden
            || is_system
            || top.parent().is_none_or(|above| above.parent().is_none())
        {
            return None;
        }
        self.usable(&top)
    }

    /// The directory with links resolved, if it can be a workspace.
    fn usable(&self, directory: &Path) -> Option<PathBuf> {
        let real = Root::open(directory).ok()?.path.clone();
        let contains = |outside: &PathBuf| real_named(outside).is_ok_and(|path| path.starts_with(&real));
        (directory.is_absolute() && !self.outside.iter().any(contains)).then_some(real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test lays out directories for the code to find")]
    fn a_project_is_found_by_a_path_in_it_and_never_the_home() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        for directory in ["a/.git", "a/src/deep", "plain/b", ".config/dots/.git"] {
            std::fs::create_dir_all(at(directory)).unwrap();
        }
        std::fs::create_dir(at(".git")).unwrap();
        let outside = vec![home.path().to_owned()];
        let choice =
            WorkspaceChoice { given: None, current: home.path().to_owned(), roots_are_local: true, outside };
        assert_eq!(choice.at_start(), None, "the home is no workspace");
        let found = |name: &str, value: &Path| choice.of_arguments(&json!({"x": 1, name: value}));
        let project = Some(ClientWorkspace::from(real_named(&at("a")).unwrap()));
        for path in ["a", "a/src/deep", "a/src/new.rs", "a/src/new/file"] {
            assert_eq!(found("file_path", &at(path)), project, "{path}");
        }
        assert_eq!(found("path", &at("a/../a/src")), project);
        for path in ["plain/b/c.txt", "x.txt", ".config/dots/x", ".git/config"] {
            assert_eq!(found("file_path", &at(path)), None, "{path}");
        }
        assert_eq!(found("content", &at("a")), None, "only arguments that are paths count");
        assert_eq!(found("path", Path::new("a")), None);
        assert_eq!(choice.of_arguments(&Value::Null), None);
    }
}
