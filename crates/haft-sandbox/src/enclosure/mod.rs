//! What the commands of one session share: their own directories, the rules made for them, what they serve.
//!
//! From a scope it makes everything that holds one command: the rules for the kernel, the filter, the proxy, the
//! environment, and what the witness has to know.

mod home;
mod scratch;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_tool::{Network, Scope, ToolError, lock};

use crate::Environment;
use crate::process::Confinement;
use crate::sandbox::{self, Found, Grants, Limits, Names, Resolver, Ruleset, Rulesets, Searches};
use crate::witness::{Denials, Places, Plan, Reach, Shared, program};
use haft_net::proxy::Proxy;
use haft_tool::net::Domains;
use home::Home;
use scratch::Scratch;

/// Devices that every program may use.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// The version of Landlock that keeps signals inside.
const SCOPES_SIGNALS: u32 = 6;
/// Directories where every program of the machine puts temporary files.
const TEMPS: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// What the commands of one session share.
#[derive(Default)]
pub struct Enclosure {
    rulesets: Rulesets,
    searches: Searches,
    shared: Arc<Shared>,
    scratch: Mutex<Option<Arc<Scratch>>>,
    last: Mutex<Option<Arc<Ground>>>,
    limits: Limits,
    cache: Option<PathBuf>,
}

/// How long what was found out about the machine is taken to be so.
const FRESH: Duration = Duration::from_secs(2);

/// What the commands of one scope stand on; finding it out costs as much as starting a small program.
struct Ground {
    scope: Scope,
    given: Environment,
    found: Instant,
    /// Paths that are not read.
    unread: Vec<PathBuf>,
    /// Names that are not read, wherever they are.
    names: Names,
    temps: Vec<PathBuf>,
    home: PathBuf,
    /// What the commands get.
    environment: Environment,
    scratch: Arc<Scratch>,
}

/// Everything that holds one command.
pub(crate) struct Held {
    pub(crate) confinement: Confinement,
    pub(crate) environment: Environment,
    pub(crate) places: Places,
    pub(crate) reach: Reach,
    /// What the proxy refused.
    pub(crate) refused: Arc<Mutex<Denials>>,
    /// How the kernel holds the command, for the receipt.
    pub(crate) how: String,
    // Kept alive while the command runs.
    _ruleset: Arc<Ruleset>,
    _proxy: Option<Proxy>,
    _scratch: Arc<Scratch>,
}

impl Enclosure {
    /// An enclosure whose commands keep their caches below `cache`.
    pub fn new(cache: Option<PathBuf>) -> Self {
        Self { cache, ..Self::default() }
    }

    /// Gets everything ready that holds a command to `scope`. `terminal` is what it may talk to a person through.
    pub(crate) fn hold(
        &self,
        scope: &Arc<Scope>,
        environment: &Environment,
        terminal: Option<&Path>,
        witness: bool,
    ) -> Result<Held, ToolError> {
        let abi = sandbox::kernel::abi().unwrap_or(0);
        let (ground, mut resolver) = self.ground(scope, environment)?;
        let own = vec![ground.scratch.path().to_owned(), ground.home.clone()];
        // Where secrets lie among files that come and go, every file is opened on the program's behalf.
        let shared = scope.roots.iter().chain(&ground.temps);
        let reads = shared.clone().any(|tree| ground.unread.iter().any(|secret| secret.starts_with(tree)))
            || scope.roots.iter().any(|root| {
                !matches!(self.searches.any_inside(root, &ground.names, sandbox::MOST_ENTRIES), Found::None)
            });
        let mut devices: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
        if let Some(terminal) = terminal {
            devices.extend([terminal.to_owned(), PathBuf::from("/dev/tty")]);
        }
        // Without a witness the program writes by itself, and what lies inside a root cannot be taken from it.
        let blocked = |root: &&PathBuf| scope.blocked.iter().any(|blocked| root.starts_with(blocked));
        let roots = scope.roots.iter().filter(|root| !blocked(root));
        let write: Vec<PathBuf> = if witness { Vec::new() } else { roots.cloned().collect() };
        let open_network = scope.network == Network::All;
        let grants = Grants {
            unread: &ground.unread,
            write: &write,
            devices: &devices,
            scratch: &own,
            tcp: open_network,
        };
        let ruleset = self.rulesets.get(&grants, &mut resolver)?;
        let plan = Plan { witness, reads, signals: abi < SCOPES_SIGNALS, open_network };
        let refused = Arc::default();
        let (proxy, reach) = proxy(&scope.network, &refused)?;
        let mut environment = ground.environment.clone();
        for (name, value) in proxy.iter().flat_map(Proxy::variables) {
            environment = environment.with(name, value);
        }
        let confinement = Confinement {
            ruleset: ruleset.as_raw_fd(),
            program: program(plan),
            limits: self.limits,
            witness,
        };
        Ok(Held {
            confinement,
            environment,
            places: Places {
                scope: Arc::clone(scope),
                scratch: own,
                temps: ground.temps.clone(),
                devices,
                secrets: ground.names.clone(),
                unread: ground.unread.clone(),
                reads,
                shared: Arc::clone(&self.shared),
            },
            reach,
            refused,
            how: how(abi, &scope.network, witness),
            _ruleset: ruleset,
            _proxy: proxy,
            _scratch: Arc::clone(&ground.scratch),
        })
    }

    /// Removes the session's own temporary directory; the next command gets a new one.
    pub fn tidy(&self) {
        drop(lock(&self.last).take());
        drop(lock(&self.scratch).take());
    }

    /// What the commands of the scope stand on, and what was looked at just now to find it out.
    fn ground(&self, scope: &Scope, environment: &Environment) -> Result<(Arc<Ground>, Resolver), ToolError> {
        let mut resolver = Resolver::default();
        let real_home = environment.get("HOME").map(PathBuf::from);
        let scratch = self.scratch()?;
        let mut last = lock(&self.last);
        if let Some(ground) = &*last
            && ground.found.elapsed() < FRESH
            && ground.scope == *scope
            && ground.given == *environment
            && Arc::ptr_eq(&ground.scratch, &scratch)
        {
            return Ok((Arc::clone(ground), resolver));
        }
        let (mut unread, names) = sandbox::places(&scope.secrets, real_home.as_deref(), &mut resolver);
        unread.extend(scope.protected.iter().cloned());
        let temps = TEMPS.iter().filter_map(|temp| Path::new(temp).canonicalize().ok()).collect();
        let home = Home::of(self.cache.as_deref(), real_home.as_deref(), scope, &scratch)?;
        let ground = Arc::new(Ground {
            scope: scope.clone(),
            given: environment.clone(),
            found: Instant::now(),
            unread,
            names: Names::new(names),
            temps,
            environment: home.environment(environment, scratch.path()),
            home: home.path().to_owned(),
            scratch,
        });
        *last = Some(Arc::clone(&ground));
        Ok((ground, resolver))
    }

    fn scratch(&self) -> Result<Arc<Scratch>, ToolError> {
        let mut scratch = lock(&self.scratch);
        // A command may have removed it; the next one needs another.
        if let Some(scratch) = &*scratch
            && scratch.path().is_dir()
        {
            return Ok(Arc::clone(scratch));
        }
        let new = Arc::new(Scratch::new()?);
        *scratch = Some(Arc::clone(&new));
        Ok(new)
    }
}

fn proxy(network: &Network, refused: &Arc<Mutex<Denials>>) -> Result<(Option<Proxy>, Reach), ToolError> {
    let list = match network {
        Network::None => return Ok((None, Reach::None)),
        Network::All => return Ok((None, Reach::All)),
        Network::Domains(list) => list,
    };
    let refused = Arc::clone(refused);
    let proxy = Proxy::start(Domains::parse(list)?, move |no| {
        let allow = no.allow.map(|entry| format!("--network {entry}"));
        let mut refused = lock(&refused);
        refused.add("connect", format!("{}:{}", no.host, no.port), no.why, allow);
    })?;
    let reach = Reach::Proxy(proxy.address());
    Ok((Some(proxy), reach))
}

/// How a command is held, in a few words for its receipt.
fn how(abi: u32, network: &Network, witness: bool) -> String {
    let network = match network {
        Network::None => "no network".to_owned(),
        Network::All => "all of the network".to_owned(),
        Network::Domains(list) => format!("network: {}", list.join(", ")),
    };
    let witness = if witness { "witness" } else { "no witness: guarded names are not held" };
    format!("Landlock {abi}, seccomp, {witness}; {network}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_directory_is_there_again_when_a_command_removed_it() {
        let enclosure = Enclosure::default();
        let first = enclosure.scratch().unwrap();
        assert!(Arc::ptr_eq(&first, &enclosure.scratch().unwrap()));
        std::fs::remove_dir(first.path()).unwrap();
        let second = enclosure.scratch().unwrap();
        assert!(second.path().is_dir() && second.path() != first.path());
    }
}
