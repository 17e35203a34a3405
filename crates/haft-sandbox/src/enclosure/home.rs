//! The home that commands see: one of their own, for each workspace, where their caches live on.
//!
//! The user's real home stays readable under its own path, but nothing there is written: what a sandboxed program
//! leaves in a shared cache could run outside of the sandbox later. The tools that live in the real home are found
//! through their own variables.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use haft_tool::{Network, Scope, ToolError};

use super::scratch::Scratch;
use crate::Environment;
use haft_files::hash;

/// Where tools are that usually live in the home: the variable, and the place.
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
/// Variables that point to the real home for things that are written.
const FORGOTTEN: &[&str] = &[
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

/// The commands' home.
pub(super) struct Home {
    path: PathBuf,
    real: Option<PathBuf>,
    offline: bool,
}

impl Home {
    /// The home for commands in the scope's workspace.
    pub(super) fn of(
        cache: Option<&Path>,
        real: Option<&Path>,
        scope: &Scope,
        scratch: &Scratch,
    ) -> Result<Self, ToolError> {
        let name = hash(scope.workspace.as_os_str().as_encoded_bytes());
        let wanted = cache.map(|cache| cache.join(&name[..16]).join("home"));
        // No place to keep caches is no reason not to work.
        let usable = |path: &PathBuf| {
            let inside = scope.roots.iter().any(|root| path.starts_with(root)) || scope.is_protected(path);
            !inside && fs::DirBuilder::new().recursive(true).mode(0o700).create(path).is_ok()
        };
        let path = if let Some(path) = wanted.filter(usable).and_then(|path| path.canonicalize().ok()) {
            path
        } else {
            let path = scratch.path().join(".home");
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.map_err(|error| ToolError::io("commands need a home", &error))?;
            path
        };
        let offline = scope.network == Network::None;
        Ok(Self { path, real: real.map(Path::to_owned), offline })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The environment with everything that is written pointing to where writing is allowed.
    pub(super) fn environment(&self, environment: &Environment, scratch: &Path) -> Environment {
        let mut changed = environment.clone();
        for name in FORGOTTEN {
            changed = changed.without(name);
        }
        let Some(real) = &self.real else {
            return changed.with("HOME", &self.path).with("TMPDIR", scratch);
        };
        for (name, place) in TOOLS {
            let place = real.join(place);
            if changed.get(name).is_none() && place.exists() {
                changed = changed.with(name, place);
            }
        }
        // Without a network there is nothing to download, so what was downloaded before is better than nothing.
        let crates = changed.get("CARGO_HOME").map_or_else(|| real.join(".cargo"), PathBuf::from);
        let (own, view) = (self.path.join(".cargo"), self.path.join(".cargo-offline"));
        let view = self.offline && crates.is_dir() && look_through(&crates, &view);
        let cargo = if view { self.path.join(".cargo-offline") } else { own };
        changed = changed.with("CARGO_HOME", cargo);
        if changed.get("GIT_CONFIG_GLOBAL").is_none() {
            let places = [real.join(".gitconfig"), real.join(".config/git/config")];
            if let Some(place) = places.into_iter().find(|place| place.exists()) {
                changed = changed.with("GIT_CONFIG_GLOBAL", place);
            }
        }
        changed.with("HOME", &self.path).with("TMPDIR", scratch)
    }
}

/// Makes `view` a directory that shows what cargo has downloaded, and takes cargo's locks, which it cannot do without.
fn look_through(crates: &Path, view: &Path) -> bool {
    if fs::DirBuilder::new().recursive(true).mode(0o700).create(view).is_err() {
        return false;
    }
    for name in ["registry", "git", "config.toml", "config", "bin", "env"] {
        let (there, here) = (crates.join(name), view.join(name));
        if fs::read_link(&here).is_ok_and(|link| link == there) {
            continue;
        }
        if there.exists() && std::os::unix::fs::symlink(&there, &here).is_err() {
            return false;
        }
    }
    true
}
