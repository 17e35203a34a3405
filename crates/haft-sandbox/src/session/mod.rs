//! What the commands of a session share: their directories, the rules made for them, their snapshots.

mod caches;
mod home;
mod home_copies;
mod hooks;
mod network;
mod redact;
mod registry_settings;
mod scratch;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_files::mounted_elsewhere;
use haft_net::proxy::LazyProxy;
use haft_tool::{Network, Scope, ToolError, lock};
#[cfg(target_os = "linux")]
use haft_tool::{PreviewedChange, Record};

use crate::denials::DenialList;
#[cfg(target_os = "linux")]
use crate::denials::RefusalSink;
use crate::limits::CommandLimits;
use crate::options::SandboxOptions;
use crate::secrets::{PathResolver, SecretNames, locate_secrets};
use crate::snapshot::{Snapshot, SnapshotStore};
use crate::{Environment, platform};
pub use caches::{CachePolicy, CacheReport, remove_old_caches};
#[cfg(target_os = "linux")]
pub(crate) use home::GRADLE_SHARED_CACHE;
use home_copies::HomeCopies;
pub use hooks::CommandHooks;
pub(crate) use network::NetworkReach;
#[cfg(target_os = "linux")]
pub(crate) use registry_settings::copy_registry_settings;
pub use registry_settings::registry_hosts;
pub(crate) use scratch::ScratchDir;
#[cfg(target_os = "linux")]
pub(crate) use scratch::create_own_directory;
pub(crate) use scratch::is_in_scratch;

/// How long the setup of a scope is reused.
const SETUP_LIFETIME: Duration = Duration::from_secs(2);

/// What the commands of one session share.
pub struct SessionSandbox {
    cache: Option<PathBuf>,
    snapshots: SnapshotStore,
    options: SandboxOptions,
    platform: platform::SessionState,
    scratch: Mutex<Option<Arc<ScratchDir>>>,
    /// The home of commands with namespaces.
    #[cfg(target_os = "linux")]
    home: Mutex<Option<ScratchDir>>,
    last_setup: Mutex<Option<Arc<ScopeSetup>>>,
    /// Copies of entries of the user's home.
    home_copies: Mutex<Option<HomeCopies>>,
}

/// What is the same for all commands of a scope. Computing it takes as long as starting a small program.
pub(crate) struct ScopeSetup {
    scope: Scope,
    given: Environment,
    terminal: Option<PathBuf>,
    caches: Option<String>,
    created: Instant,
    /// Paths that are not read.
    pub(crate) secret_paths: Vec<PathBuf>,
    /// Names that are not read in any directory.
    pub(crate) secret_names: SecretNames,
    /// The namespaces that commands enter, or why there are none.
    #[cfg(target_os = "linux")]
    pub(crate) namespaces: Result<crate::linux::SessionNamespaces, crate::linux::NamespaceError>,
    /// The home of commands.
    pub(crate) home: PathBuf,
    pub(crate) environment: Environment,
    pub(crate) scratch: Arc<ScratchDir>,
}

/// A command to be sandboxed.
pub(crate) struct CommandRequest<'a> {
    pub(crate) scope: &'a Arc<Scope>,
    pub(crate) setup: &'a ScopeSetup,
    /// The terminal that the command may use.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux uses it"))]
    pub(crate) terminal: Option<&'a Path>,
    pub(crate) network: NetworkReach,
    pub(crate) limits: CommandLimits,
    /// Whether a witness records the command.
    #[cfg(target_os = "linux")]
    pub(crate) witness: bool,
}

/// The sandbox of one command.
pub(crate) struct CommandSandbox {
    /// Taken when the command is started.
    pub(crate) confinement: Option<platform::Confinement>,
    /// Taken when the witness is started.
    #[cfg(target_os = "linux")]
    pub(crate) witness: Option<crate::linux::WitnessConfig>,
    pub(crate) environment: Environment,
    /// What the proxy refused.
    pub(crate) refused: Arc<Mutex<DenialList>>,
    /// Receives what is refused while the command runs.
    #[cfg(target_os = "linux")]
    pub(crate) on_refused: Option<RefusalSink>,
    /// How the command is confined, for its receipt.
    pub(crate) enforcement: String,
    /// Taken when the command is started.
    pub(crate) proxy: Option<LazyProxy>,
    // Kept while the command runs.
    _scratch: Arc<ScratchDir>,
}

/// The directory that holds the temporary directories of all sessions of this user.
pub fn private_temp_directory() -> Option<PathBuf> {
    scratch::user_directory().ok()
}

/// How a command is confined, and what is weaker than it could be.
fn describe_enforcement(prepared: &platform::PreparedSandbox, network: &Network) -> String {
    let mut text = format!("{}; {}", prepared.enforcement, network::describe(network));
    if !prepared.weaker.is_empty() {
        text.push_str("; weaker: ");
        text.push_str(&prepared.weaker.join("; "));
    }
    text
}

impl SessionSandbox {
    /// A sandbox whose commands keep their caches below `cache`. Snapshots are kept below `private`, which no command
    /// can read.
    pub fn new(cache: Option<PathBuf>, private: &Path, options: SandboxOptions) -> Self {
        Self {
            cache,
            snapshots: SnapshotStore::new(private.join("snapshots")),
            options,
            platform: platform::SessionState::default(),
            scratch: Mutex::default(),
            #[cfg(target_os = "linux")]
            home: Mutex::default(),
            last_setup: Mutex::default(),
            home_copies: Mutex::default(),
        }
    }

    /// Where the session's commands have a file at `path`, if they see another one there than Haft: in `/tmp` and in the
    /// home, with namespaces.
    #[cfg(target_os = "linux")]
    pub fn session_path(&self, path: &Path) -> Option<PathBuf> {
        let setup = lock(&self.last_setup).clone()?;
        let inside = setup.namespaces.as_ref().ok()?.view.source_of(path)?;
        inside.symlink_metadata().is_ok().then_some(inside)
    }

    /// `None`: on macOS commands see the same files as Haft.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "on Linux it depends on the namespaces")]
    pub fn session_path(&self, _path: &Path) -> Option<PathBuf> {
        None
    }

    /// What the session's commands would have changed, if they were only tried.
    #[cfg(target_os = "linux")]
    pub(crate) fn previewed(&self) -> Result<Option<Vec<PreviewedChange>>, ToolError> {
        let Some(setup) = lock(&self.last_setup).clone().filter(|_| self.options.preview) else {
            return Ok(None);
        };
        let Ok(session) = &setup.namespaces else { return Ok(None) };
        let mut all = Vec::new();
        for overlaid in &session.view.overlaid {
            let changes = overlaid.changes();
            all.extend(changes.map_err(|error| ToolError::io("list what would have changed", &error))?);
        }
        Ok(Some(all))
    }

    /// The record of commands that are only tried.
    #[cfg(target_os = "linux")]
    pub(crate) fn discarding_record(&self) -> Option<Arc<dyn Record>> {
        self.options.preview.then(|| Arc::new(crate::linux::DiscardingRecord) as Arc<dyn Record>)
    }

    /// Removes the session's temporary files; the next command gets a new directory.
    pub fn tidy(&self) {
        drop(lock(&self.last_setup).take());
        #[cfg(target_os = "linux")]
        self.platform.clear();
        drop(lock(&self.scratch).take());
        #[cfg(target_os = "linux")]
        drop(lock(&self.home).take());
        self.snapshots.clear();
    }

    /// Prepares everything that restricts a command to `scope`. `terminal` is the terminal that it may use.
    pub(crate) fn prepare(
        &self,
        scope: &Arc<Scope>,
        setup: &ScopeSetup,
        terminal: Option<&Path>,
        #[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "only Linux has a witness"))]
        witness: bool,
        hooks: &CommandHooks,
    ) -> Result<CommandSandbox, ToolError> {
        let refused = Arc::new(Mutex::new(DenialList::new(hooks.on_refused.clone())));
        let listener = setup.listen(&scope.network)?;
        let address = listener.as_ref().and_then(|listener| listener.local_addr().ok());
        let network = setup.reach(&scope.network, address);
        let settings = hooks.proxy_settings(&scope.network, &self.options.own_hosts, &refused)?;
        let proxy = listener.map(|listener| LazyProxy::new(listener, settings));
        let prepared = self.platform.prepare(&CommandRequest {
            scope,
            setup,
            terminal,
            network,
            limits: self.options.limits,
            #[cfg(target_os = "linux")]
            witness,
        })?;
        let environment = network::environment(&setup.environment, &scope.network, address);
        let enforcement = describe_enforcement(&prepared, &scope.network);
        Ok(CommandSandbox {
            confinement: Some(prepared.confinement),
            #[cfg(target_os = "linux")]
            witness: prepared.witness,
            environment,
            refused,
            #[cfg(target_os = "linux")]
            on_refused: hooks.on_refused.clone(),
            enforcement,
            proxy,
            _scratch: Arc::clone(&setup.scratch),
        })
    }

    /// The state of what a command of the scope may write, for commands without a witness.
    pub(crate) fn snapshot(&self, scope: &Scope) -> Result<Snapshot, ToolError> {
        let mut roots = writable_roots(scope);
        if cfg!(target_os = "macos") {
            // The Seatbelt profile makes them writable, too.
            roots.extend(scope.grants.iter().cloned());
        }
        let taken = self.snapshots.take(&roots, &scope.protected);
        taken.map_err(|error| ToolError::io("The workspace cannot be copied before the command", &error))
    }

    /// What is the same for all commands of a scope. `caches` is the name of their caches; the workspace's by default.
    pub(crate) fn setup(
        &self,
        scope: &Scope,
        given: &Environment,
        terminal: Option<&Path>,
        caches: Option<&str>,
    ) -> Result<Arc<ScopeSetup>, ToolError> {
        let scratch = self.scratch()?;
        let mut last = lock(&self.last_setup);
        if let Some(setup) = &*last
            && setup.created.elapsed() < SETUP_LIFETIME
            && setup.scope == *scope
            && setup.given == *given
            && setup.terminal.as_deref() == terminal
            && setup.caches.as_deref() == caches
            && Arc::ptr_eq(&setup.scratch, &scratch)
        {
            return Ok(Arc::clone(setup));
        }
        let real_home = given.get("HOME").map(PathBuf::from);
        let (mut secret_paths, names) =
            locate_secrets(&scope.secrets, real_home.as_deref(), &mut PathResolver::default());
        let home = real_home.as_ref().and_then(|home| home.canonicalize().ok()).unwrap_or_default();
        let other_homes = mounted_elsewhere(&home);
        for other in &other_homes {
            secret_paths.extend(locate_secrets(&scope.secrets, Some(other), &mut PathResolver::default()).0);
            let protected = scope.protected.iter().filter_map(|path| path.strip_prefix(&home).ok());
            secret_paths.extend(protected.map(|path| other.join(path)));
        }
        secret_paths.extend(scope.protected.iter().cloned());
        let directories = home::SessionDirs::new(self.cache.as_deref(), caches, scope, &scratch)
            .map_err(|error| ToolError::io("Commands need a home directory", &error))?;
        #[cfg(target_os = "linux")]
        let namespaces = if self.options.namespaces {
            self.platform.namespaces(&crate::linux::ViewRequest {
                scope,
                options: &self.options,
                home: real_home.as_deref(),
                other_homes: &other_homes,
                scratch: scratch.path(),
                home_source: &self.home_source(&scratch),
                caches: directories.caches.as_deref(),
                secrets: &secret_paths,
                terminal,
                has_network: scope.network != Network::None,
            })
        } else {
            Err(crate::linux::NamespaceError::TurnedOff)
        };
        #[cfg(target_os = "linux")]
        match &namespaces {
            Ok(_) => self.platform.serve(&self.options.served_ports)?,
            Err(reason) if self.options.preview => {
                return Err(ToolError::failed(format!(
                    "The command cannot be tried without changes, because that needs an overlay in namespaces of its own: \
                     {reason}. `haft doctor` says more; leave out --preview to run it, and undo it with `haft undo`"
                )));
            }
            Err(reason) if self.options.workspace_reads => {
                return Err(ToolError::failed(format!(
                    "Reads cannot be confined to the workspace, because commands have no namespaces: {reason}. Allow \
                     namespaces (`haft doctor`), or leave out --read workspace"
                )));
            }
            // Without namespaces commands serve on the machine's own loopback interface.
            Err(_) => {}
        }
        #[cfg(target_os = "linux")]
        let view = namespaces.as_ref().ok().map(|session| &*session.view);
        #[cfg(not(target_os = "linux"))]
        let view = None;
        let home = directories.home(real_home.as_deref(), view);
        #[cfg(target_os = "linux")]
        let inside = view.and_then(|view| view.source_of(&home)).unwrap_or_else(|| home.clone());
        #[cfg(not(target_os = "linux"))]
        let inside = home.clone();
        self.copy_home_entries(real_home.as_deref(), &inside);
        if real_home.as_ref() == Some(&home) {
            // The copy is at the path of the user's own file, which commands do not see.
            let SandboxOptions { home_copies, home_logins, .. } = &self.options;
            let is_copy = |path: &PathBuf| {
                home_copies.iter().chain(home_logins).any(|entry| path.starts_with(home.join(entry)))
            };
            secret_paths.retain(|path| !is_copy(path));
        }
        let environment =
            home::environment(given, &home, real_home.as_deref(), &scratch, view, &scope.network);
        let setup = Arc::new(ScopeSetup {
            scope: scope.clone(),
            given: given.clone(),
            terminal: terminal.map(Path::to_owned),
            caches: caches.map(str::to_owned),
            created: Instant::now(),
            secret_paths,
            secret_names: SecretNames::new(names),
            #[cfg(target_os = "linux")]
            namespaces,
            home,
            environment,
            scratch,
        });
        *last = Some(Arc::clone(&setup));
        Ok(setup)
    }

    /// Copies entries of the user's home to the home of commands, once per session.
    fn copy_home_entries(&self, real_home: Option<&Path>, home: &Path) {
        let SandboxOptions { home_copies: entries, home_logins: logins, .. } = &self.options;
        let mut copies = lock(&self.home_copies);
        if let Some(real_home) = real_home
            && copies.is_none()
            && !(entries.is_empty() && logins.is_empty())
        {
            *copies = Some(HomeCopies::make(real_home, home, entries, logins));
        }
    }

    /// Writes logins back that commands have renewed, and returns their paths.
    pub fn keep_logins(&self) -> Vec<PathBuf> {
        lock(&self.home_copies).as_ref().map(HomeCopies::keep_logins).unwrap_or_default()
    }

    /// The directory that is the home of commands with namespaces.
    #[cfg(target_os = "linux")]
    fn home_source(&self, scratch: &ScratchDir) -> PathBuf {
        let mut home = lock(&self.home);
        if home.is_none() {
            *home = ScratchDir::in_memory().ok();
        }
        home.as_ref().map_or_else(|| scratch.path().join("home"), |home| home.path().to_owned())
    }

    fn scratch(&self) -> Result<Arc<ScratchDir>, ToolError> {
        let mut scratch = lock(&self.scratch);
        // A command may have removed it.
        if let Some(scratch) = &*scratch
            && scratch.path().is_dir()
        {
            return Ok(Arc::clone(scratch));
        }
        let created = ScratchDir::new()
            .map_err(|error| ToolError::io("Commands need a private temporary directory", &error))?;
        let created = Arc::new(created);
        *scratch = Some(Arc::clone(&created));
        Ok(created)
    }
}

/// The roots that a command may write.
pub(crate) fn writable_roots(scope: &Scope) -> Vec<PathBuf> {
    let is_blocked = |root: &&PathBuf| scope.blocked.iter().any(|blocked| root.starts_with(blocked));
    scope.roots.iter().filter(|root| !is_blocked(root)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_scratch_directory_is_replaced() {
        let private = tempfile::tempdir().unwrap();
        let sandbox = SessionSandbox::new(None, private.path(), SandboxOptions::default());
        let first = sandbox.scratch().unwrap();
        assert!(Arc::ptr_eq(&first, &sandbox.scratch().unwrap()));
        std::fs::remove_dir(first.path()).unwrap();
        let second = sandbox.scratch().unwrap();
        assert!(second.path().is_dir() && second.path() != first.path());
    }
}
