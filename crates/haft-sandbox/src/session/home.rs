//! The home directory of commands and the variables that name directories.
//!
//! The user's real home is not written: what a sandboxed program leaves in a shared cache could run outside of the
//! sandbox later. With namespaces a private home is at the real path. Without them it is elsewhere, and tools in the real
//! home are found through their own variables.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use haft_files::hash;
use haft_tool::{Network, Scope};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

use super::registry_settings::{copy_registry_settings, copy_settings};
use super::scratch::{ScratchDir, create_own_directory};
use crate::Environment;
use crate::platform::SessionView;

/// Variables of tools that are usually installed in the home, and the place there.
const TOOLS: &[(&str, &str)] = &[
    ("RUSTUP_HOME", ".rustup"),
    ("NVM_DIR", ".nvm"),
    ("PYENV_ROOT", ".pyenv"),
    ("RBENV_ROOT", ".rbenv"),
    ("VOLTA_HOME", ".volta"),
    ("FNM_DIR", ".local/share/fnm"),
    ("SDKMAN_DIR", ".sdkman"),
    ("ASDF_DATA_DIR", ".asdf"),
    ("MISE_DATA_DIR", ".local/share/mise"),
    ("BUN_INSTALL", ".bun"),
    ("DENO_INSTALL", ".deno"),
    ("PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright"),
];
/// Variables that name directories in the real home that are written.
const REMOVED: &[&str] = &[
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "DENO_DIR",
    "TEMP",
    "TMP",
];
/// Entries of cargo's home that commands without a network share.
const CARGO_ENTRIES: &[&str] = &["registry", "git", "bin", "env"];
/// The settings in cargo's home.
const CARGO_SETTINGS: &[&str] = &["config.toml", "config"];
/// Where commands see what the user's Gradle has downloaded, read-only.
pub(crate) const GRADLE_SHARED_CACHE: &str = ".gradle/shared";
const DIRECTORY_MODE: u32 = 0o700;
/// Length of a workspace's directory name below the cache.
const NAME_LENGTH: usize = 16;

/// Where the home and the caches of commands are.
pub(super) struct SessionDirs {
    /// The home where there are no namespaces.
    private_home: PathBuf,
    /// Caches that persist.
    pub(super) caches: Option<PathBuf>,
}

impl SessionDirs {
    /// The directories of commands in the scope's workspace, or of that name, created if necessary.
    pub(super) fn new(
        cache: Option<&Path>,
        name: Option<&str>,
        scope: &Scope,
        scratch: &ScratchDir,
    ) -> io::Result<Self> {
        let name = match name {
            Some(name) => hash(name.as_bytes())[..NAME_LENGTH].to_owned(),
            None => cache_name(&scope.workspace),
        };
        let persistent = cache.map(|cache| cache.join(name));
        let usable = |name: &str| {
            let parent = persistent.as_ref()?;
            create_directory(parent).ok()?;
            let path = parent.canonicalize().ok()?.join(name);
            let inside = scope.roots.iter().any(|root| path.starts_with(root)) || scope.is_protected(&path);
            (!inside && create_own_directory(&path, DIRECTORY_MODE).is_ok()).then_some(path)
        };
        let caches = usable("caches");
        // Its time says when the caches were last used.
        if let Some(path) = &persistent {
            let _ = utimensat(CWD, path, &now(), AtFlags::SYMLINK_NOFOLLOW);
        }
        // Without a usable cache directory commands still work, but their caches do not persist.
        let private_home = if let Some(home) = usable("home") {
            home
        } else {
            let home = scratch.path().join(".home");
            create_own_directory(&home, DIRECTORY_MODE)?;
            home
        };
        Ok(Self { private_home, caches })
    }

    /// The home of commands with this view.
    pub(super) fn home(&self, real_home: Option<&Path>, view: Option<&SessionView>) -> PathBuf {
        let in_place = real_home.filter(|home| is_in_place(home, view));
        in_place.map_or_else(|| self.private_home.clone(), Path::to_owned)
    }
}

/// The name of a workspace's directory below the cache.
pub(super) fn cache_name(workspace: &Path) -> String {
    hash(workspace.as_os_str().as_encoded_bytes())[..NAME_LENGTH].to_owned()
}

/// Both times of a file that was used now.
fn now() -> Timestamps {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    Timestamps { last_access: now, last_modification: now }
}

/// Whether commands find a private home at the real path.
fn is_in_place(real_home: &Path, view: Option<&SessionView>) -> bool {
    real_home.canonicalize().is_ok_and(|home| view.is_some_and(|view| view.is_private(&home)))
}

/// The environment for commands whose home is `home`: everything that is written is redirected there or to a temporary
/// directory of the session.
pub(super) fn environment(
    given: &Environment,
    home: &Path,
    real_home: Option<&Path>,
    scratch: &ScratchDir,
    view: Option<&SessionView>,
    network: &Network,
) -> Environment {
    let temp = if view.is_some() { Path::new("/tmp") } else { scratch.path() };
    let mut environment = given.clone().with("HOME", home).with("TMPDIR", temp);
    // Its usual place is below /run, which commands cannot write.
    environment = environment.with("SCREENDIR", temp.join("screen"));
    if view.is_none() {
        environment = environment.with("TMUX_TMPDIR", temp);
    }
    let Some(real_home) = real_home else { return without(environment, REMOVED) };
    if is_in_place(real_home, view) {
        let is_elsewhere =
            |name: &&str| environment.get(name).is_some_and(|path| !Path::new(path).starts_with(real_home));
        let removed: Vec<&str> = REMOVED.iter().copied().filter(is_elsewhere).collect();
        environment = without(environment, &removed);
        if real_home.join(".gradle/caches").is_dir() && environment.get("GRADLE_RO_DEP_CACHE").is_none() {
            environment = environment.with("GRADLE_RO_DEP_CACHE", real_home.join(GRADLE_SHARED_CACHE));
        }
        return environment;
    }
    environment = without(environment, REMOVED);
    copy_registry_settings(real_home, home);
    for (name, place) in TOOLS {
        let place = real_home.join(place);
        if environment.get(name).is_none() && place.exists() {
            environment = environment.with(name, place);
        }
    }
    // Without a network nothing can be downloaded, so the user's downloads are shared.
    let users = environment.get("CARGO_HOME").map_or_else(|| real_home.join(".cargo"), PathBuf::from);
    let offline = home.join(".cargo-offline");
    let is_shared = *network == Network::None && users.is_dir() && link_cargo_home(&users, &offline);
    environment = environment.with("CARGO_HOME", if is_shared { offline } else { home.join(".cargo") });
    let modules = real_home.join("go/pkg/mod");
    if *network == Network::None && modules.is_dir() {
        environment = environment.with("GOMODCACHE", modules);
    }
    // Java takes the home from the list of users.
    environment = environment.with("GRADLE_USER_HOME", home.join(".gradle"));
    environment = environment.with("MAVEN_OPTS", format!("-Duser.home={}", home.display()));
    if environment.get("GIT_CONFIG_GLOBAL").is_none() {
        let places = [real_home.join(".gitconfig"), real_home.join(".config/git/config")];
        if let Some(place) = places.into_iter().find(|place| place.exists()) {
            environment = environment.with("GIT_CONFIG_GLOBAL", place);
        }
    }
    environment
}

fn without(mut environment: Environment, names: &[&str]) -> Environment {
    for name in names {
        environment = environment.without(name);
    }
    environment
}

/// Fills `offline` with links to the entries of cargo's home. Cargo locks files in the directory itself, so it must be
/// writable.
fn link_cargo_home(users: &Path, offline: &Path) -> bool {
    let Ok(directory) = create_own_directory(offline, DIRECTORY_MODE) else { return false };
    for name in CARGO_SETTINGS {
        copy_settings(&users.join(name), &directory, Path::new(name));
    }
    CARGO_ENTRIES.iter().all(|name| {
        let target = users.join(name);
        let link = || rustix::fs::symlinkat(&target, &directory, *name);
        let known = rustix::fs::readlinkat(&directory, *name, Vec::new());
        known.is_ok_and(|known| known.as_bytes() == target.as_os_str().as_encoded_bytes())
            || !target.exists()
            || link().is_ok()
    })
}

fn create_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
}
