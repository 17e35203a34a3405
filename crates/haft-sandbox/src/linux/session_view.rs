//! What the commands of a session see, for its scope, and the namespaces with that view.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_tool::{Scope, lock};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::preview::OverlaidDir;
use crate::options::SandboxOptions;

use super::namespaces::{MountedDir, NamespaceError, Namespaces, SessionView};
use super::workspace_owner::WorkspaceOwner;
use crate::session::{GRADLE_SHARED_CACHE, copy_registry_settings, create_own_directory};

/// Temporary directories, of which every session has its own.
const TEMP_DIRS: &[(&str, &str)] = &[("/tmp", "tmp"), ("/var/tmp", "var-tmp")];
/// Entries of the home directory with a dot that commands see: toolchains, and what has no secrets. Of a directory that also
/// has credentials, the parts that tools need; where those lie deeper, they are in `SECRETS` of haft-policy.
const VISIBLE_DOT_ENTRIES: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".cabal/bin",
    ".cabal/packages",
    ".cabal/store",
    ".cache/ms-playwright",
    ".cargo/bin",
    ".cargo/env",
    ".config/git/attributes",
    ".config/git/config",
    ".config/git/ignore",
    ".deno/bin",
    ".dotnet",
    ".elan",
    ".fzf",
    ".ghcup",
    ".gitconfig",
    ".gitignore",
    ".gitignore_global",
    ".goenv",
    ".jenv",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".mix",
    ".nix-defexpr",
    ".nix-profile",
    ".nvm",
    ".nodenv",
    ".opam",
    ".phpenv",
    ".pixi",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".rye/env",
    ".rye/pip-tools",
    ".rye/py",
    ".rye/self",
    ".rye/shims",
    ".rye/tools",
    ".rye/uv",
    ".sdkman",
    ".stack",
    ".swiftly",
    ".terminfo",
    ".tfenv",
    ".volta",
];
/// Directories in `/` that commands see also if they may read the workspace only.
const SYSTEM_DIRS: &[&str] = &[
    "bin", "boot", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "run",
    "sbin", "snap", "sys", "tmp", "usr", "var",
];
/// Downloads of package managers. Without a network commands see the user's own, else they have their own, which persist.
const DOWNLOADS: &[&str] =
    &[".cargo/git", ".cargo/registry", ".ivy2/cache", ".m2/repository", ".nuget/packages", "go/pkg"];
/// Caches of commands, which persist.
const CACHES: &[&str] = &[".cache", ".gradle/caches", ".npm", ".local/share/pnpm"];
/// Gradle must be able to write its cache, and reads the user's downloads beside it.
const GRADLE_DOWNLOADS: &str = ".gradle/caches/modules-2";

/// What a view is made from.
pub(crate) struct ViewRequest<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) options: &'a SandboxOptions,
    pub(crate) home: Option<&'a Path>,
    /// Where else it is mounted.
    pub(crate) other_homes: &'a [PathBuf],
    /// A directory of the session.
    pub(crate) scratch: &'a Path,
    /// The directory of the session that is the home of commands.
    pub(crate) home_source: &'a Path,
    /// Where the caches of commands persist.
    pub(crate) caches: Option<&'a Path>,
    /// What commands may not read.
    pub(crate) secrets: &'a [PathBuf],
    pub(crate) terminal: Option<&'a Path>,
    /// Whether commands reach a part of the network.
    pub(crate) has_network: bool,
}

/// The namespaces of a session, and their view.
#[derive(Debug, Clone)]
pub(crate) struct SessionNamespaces {
    pub(crate) namespaces: Arc<Namespaces>,
    pub(crate) view: Arc<SessionView>,
}

/// How many commands of a session can have as many processes as they may at the same time.
const COMMANDS_AT_LIMIT: usize = 2;
const LEAST_MAX_PID: usize = 1_024;
/// The kernel's own limit.
const GREATEST_MAX_PID: usize = 1 << 22;

/// How many views of a session are kept: one for its commands, and some for servers with other rights.
const MAX_VIEWS: usize = 8;

/// The namespaces of a session's views, the most recently used first. What is removed lives until its last command has
/// ended.
#[derive(Debug, Default)]
pub(super) struct NamespaceCache(Mutex<Vec<CachedNamespaces>>);

/// A view, and its namespaces or why there are none.
type CachedNamespaces = (Arc<SessionView>, Result<Arc<Namespaces>, NamespaceError>);

impl NamespaceCache {
    pub(super) fn get(&self, view: SessionView) -> Result<SessionNamespaces, NamespaceError> {
        let mut cached = lock(&self.0);
        let known = cached.iter().position(|(known, _)| **known == view).map(|index| cached.remove(index));
        let is_usable = |(_, namespaces): &CachedNamespaces| {
            namespaces.as_ref().map_or(true, |namespaces| namespaces.are_alive())
        };
        let (view, namespaces) = known.filter(is_usable).unwrap_or_else(|| {
            let namespaces = Namespaces::new(&view).map(Arc::new);
            (Arc::new(view), namespaces)
        });
        cached.insert(0, (Arc::clone(&view), namespaces.clone()));
        cached.truncate(MAX_VIEWS);
        Ok(SessionNamespaces { namespaces: namespaces?, view })
    }

    /// Connects to a port on the loopback interface of any of the namespaces.
    pub(super) fn connect(&self, port: u16) -> Option<TcpStream> {
        let all: Vec<_> =
            lock(&self.0).iter().filter_map(|(_, namespaces)| namespaces.clone().ok()).collect();
        all.iter().find_map(|namespaces| namespaces.connect(port).ok())
    }

    pub(super) fn clear(&self) {
        lock(&self.0).clear();
    }
}

/// The view for a scope. Creates the session's directories.
pub(super) fn build(request: &ViewRequest<'_>) -> Result<SessionView, NamespaceError> {
    build_view(request).map_err(|error| NamespaceError::Failed {
        step: "creating the session's directories".to_owned(),
        error: Errno::from_io_error(&error).unwrap_or(Errno::IO),
    })
}

/// The largest process id in the namespaces of a session whose commands may each have so many processes. It bounds how many there
/// are in all; several commands can run side by side.
fn max_pid(processes: usize) -> usize {
    processes.saturating_mul(COMMANDS_AT_LIMIT).clamp(LEAST_MAX_PID, GREATEST_MAX_PID)
}

fn build_view(request: &ViewRequest<'_>) -> io::Result<SessionView> {
    let ViewRequest { scope, scratch, .. } = *request;
    let mut view = SessionView {
        writable: writable(scope),
        empty: (scratch.join("empty"), scratch.join("empty-file")),
        terminal: request.terminal.map(Path::to_owned),
        network: scope.network.clone(),
        max_pid: max_pid(request.options.limits.processes),
        ..SessionView::default()
    };
    create_own_directory(&view.empty.0, 0o755)?;
    create_own_file(&view.empty.1)?;
    if request.options.preview {
        for (number, lower) in view.writable.iter().enumerate() {
            let place = scratch.join(format!("preview-{number}"));
            let overlaid =
                OverlaidDir { lower: lower.clone(), upper: place.join("upper"), work: place.join("work") };
            create_own_directory(&place, 0o700)?;
            create_own_directory(&overlaid.upper, 0o755)?;
            create_own_directory(&overlaid.work, 0o700)?;
            view.overlaid.push(overlaid);
        }
    }
    for (target, name) in TEMP_DIRS {
        let Ok(target) = Path::new(target).canonicalize() else { continue };
        if !is_within(&target, &view.writable) && !view.is_private(&target) {
            let source = scratch.join(name);
            create_own_directory(&source, 0o1777)?;
            view.private.push(MountedDir { source, target });
        }
    }
    if request.options.workspace_reads {
        let hidden = scratch.join("hidden");
        create_own_directory(&hidden, 0o755)?;
        for target in other_directories(&view)? {
            let source = hidden.join(target.file_name().unwrap_or_default());
            create_own_directory(&source, 0o755)?;
            view.private.push(MountedDir { source, target });
        }
    }
    let home = request.home.and_then(|home| home.canonicalize().ok());
    let writable = view.writable.clone();
    let is_hideable = |home: &PathBuf| home.parent().is_some() && !is_within(home, &writable);
    if let Some(home) = home.filter(is_hideable) {
        add_home(&mut view, request, &home, request.home_source.to_owned())?;
        add_caches(&mut view, request, &home)?;
    }
    for (number, other) in request.other_homes.iter().filter(|home| is_hideable(home)).enumerate() {
        if !view.is_private(other) {
            add_home(&mut view, request, other, scratch.join(format!("other-home-{number}")))?;
        }
    }
    view.owner = WorkspaceOwner::find(&scope.workspace);
    let owned = view.owner.map(|owner| owner.homes(&scope.workspace)).unwrap_or_default();
    for (number, home) in owned.into_iter().filter(is_hideable).enumerate() {
        if !view.is_private(&home) {
            add_home(&mut view, request, &home, scratch.join(format!("owner-{number}")))?;
        }
    }
    view.visible.sort();
    let hidden = request.secrets.iter().filter(|path| is_visible(path, &view) && path.exists());
    view.hidden = hidden.filter_map(|path| path.canonicalize().ok()).collect();
    view.hidden.sort();
    view.hidden.dedup();
    Ok(view)
}

/// The directories in `/` that are not the system's.
fn other_directories(view: &SessionView) -> io::Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir("/")?.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let others = entries.filter(|entry| !SYSTEM_DIRS.iter().any(|name| entry.file_name() == *name));
    Ok(others.map(|entry| entry.path()).filter(|path| !view.is_private(path)).collect())
}

/// A home directory of the session, `source`, at the real path, with the visible parts of the real one.
fn add_home(
    view: &mut SessionView,
    request: &ViewRequest<'_>,
    home: &Path,
    source: PathBuf,
) -> io::Result<()> {
    create_own_directory(&source, 0o700)?;
    copy_registry_settings(home, &source);
    view.private.push(MountedDir { source, target: home.to_owned() });
    let entries = fs::read_dir(home)?.flatten().map(|entry| entry.file_name());
    let plain =
        entries.filter(|name| !request.options.workspace_reads && !name.as_encoded_bytes().starts_with(b"."));
    let listed = VISIBLE_DOT_ENTRIES.iter().map(Path::new);
    let listed = listed.chain(request.options.home_entries.iter().map(PathBuf::as_path));
    for target in plain.map(|name| home.join(name)).chain(listed.map(|name| home.join(name))) {
        // What a link leads to may be hidden under its own path.
        if let Ok(source) = target.canonicalize()
            && !view.is_private(&target)
            && !shows_secret(&source, &target, request.secrets)
        {
            view.visible.push(MountedDir { source, target });
        }
    }
    Ok(())
}

/// Whether a secret would be visible at another path than its own, because an entry is a link.
fn shows_secret(source: &Path, target: &Path, secrets: &[PathBuf]) -> bool {
    source != target
        && secrets.iter().any(|secret| {
            let real = secret.canonicalize();
            let secret = real.as_deref().unwrap_or(secret);
            source.starts_with(secret) || secret.starts_with(source)
        })
}

/// Caches that persist, and the downloads of package managers.
fn add_caches(view: &mut SessionView, request: &ViewRequest<'_>, home: &Path) -> io::Result<()> {
    let mut own: Vec<&str> = CACHES.to_vec();
    for name in DOWNLOADS {
        if request.has_network {
            own.push(name);
        } else if home.join(name).is_dir() {
            view.visible.push(MountedDir { source: home.join(name), target: home.join(name) });
        }
    }
    if home.join(GRADLE_DOWNLOADS).is_dir() {
        let target = home.join(GRADLE_SHARED_CACHE).join("modules-2");
        view.visible.push(MountedDir { source: home.join(GRADLE_DOWNLOADS), target });
    }
    if let Some(caches) = request.caches {
        let is_covered = |path: &Path| view.visible.iter().any(|visible| path.starts_with(&visible.target));
        // Nothing can be created in a directory that is visible and read-only.
        own.retain(|name| !is_covered(&home.join(name)) || home.join(name).is_dir());
        for name in own {
            let source = caches.join(name);
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&source)?;
            view.private.push(MountedDir { source, target: home.join(name) });
        }
    }
    Ok(())
}

/// What is mounted writable: the roots of the scope, and the directories around single files.
fn writable(scope: &Scope) -> Vec<PathBuf> {
    let mut writable: Vec<PathBuf> = scope.roots.clone();
    for grant in &scope.grants {
        let existing = grant.ancestors().skip(1).find(|path| path.is_dir());
        writable.extend(existing.map(Path::to_owned));
    }
    writable.retain(|path| path.exists());
    writable.sort();
    writable.dedup();
    writable
}

/// Whether a hidden path would be visible otherwise.
fn is_visible(path: &Path, view: &SessionView) -> bool {
    let depth = |paths: &mut dyn Iterator<Item = &PathBuf>| {
        paths.filter(|around| path.starts_with(around)).map(|around| around.as_os_str().len()).max()
    };
    let private = depth(&mut view.private.iter().map(|private| &private.target));
    let visible = view.visible.iter().map(|visible| &visible.target);
    private.is_none() || private <= depth(&mut visible.chain(&view.writable))
}

fn is_within(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

/// An empty file in the session's directory that cannot be opened: an empty secret would look like the real one. Without namespaces commands can write there, so a link is not followed.
fn create_own_file(path: &Path) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = || rustix::fs::open(path, flags, Mode::empty());
    create().or_else(|_| rustix::fs::unlink(path).and_then(|()| create()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn e13_links_of_commands_in_their_home_are_not_followed_by_mounts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        let at = |name: &str| path.join(name);
        for name in ["home/.config/git", "home/notes", "home/.nvm", "outside", "work", "scratch", "caches"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["home/.config/git/config", "home/.gitconfig", "home/file"] {
            fs::write(at(name), "").unwrap();
        }
        let scope = Scope::of(at("work"));
        let [home, scratch, home_source, caches] = ["home", "scratch", "scratch/home", "caches"].map(at);
        let request = ViewRequest {
            scope: &scope,
            home: Some(&home),
            other_homes: &[],
            options: &SandboxOptions::default(),
            scratch: &scratch,
            home_source: &home_source,
            caches: Some(&caches),
            secrets: &[],
            terminal: None,
            has_network: true,
        };
        let namespaces = || NamespaceCache::default().get(build(&request).unwrap());
        let is_granted = namespaces().is_ok();
        // What commands of the session can do to their home and to their temporary files.
        let _ = fs::remove_dir_all(at("scratch/home"));
        fs::create_dir_all(at("scratch/home/.gitconfig/full")).unwrap();
        fs::write(at("scratch/home/.cache"), "").unwrap();
        for name in ["home/.config", "home/.nvm", "home/file", "home/notes", "empty-file"] {
            let _ = fs::remove_file(at("scratch").join(name));
            symlink(at("outside/new"), at("scratch").join(name)).unwrap();
        }
        fs::remove_dir(at("scratch/empty")).unwrap();
        symlink(at("outside"), at("scratch/empty")).unwrap();
        symlink(at("outside"), at("scratch/home/.cargo")).unwrap();
        let before = fs::metadata(at("outside")).unwrap().permissions();
        let second = namespaces();
        assert_eq!(second.is_ok(), is_granted, "{:?}", second.err());
        assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 0);
        assert_eq!(fs::metadata(at("outside")).unwrap().permissions(), before);
    }
}
