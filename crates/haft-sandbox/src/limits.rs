//! Resource limits of commands, so that a runaway command ends before it exhausts the machine.

use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const GIB_BYTES: u64 = 1 << 30;
/// macOS refuses more than its `OPEN_MAX`.
const MAX_OPEN_FILES: u64 = if cfg!(target_os = "macos") { 10_240 } else { 65_536 };
/// Assumed if the size of the memory is unknown.
const DEFAULT_MEMORY_BYTES: u64 = 8 * GIB_BYTES;

/// Processes and threads of the user; root has no such limit.
const MAX_USER_PROCESSES: u64 = 16_384;

/// The resource limits of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandLimits {
    /// Bytes of memory of all its processes; three quarters of the machine's by default.
    pub memory_bytes: u64,
    /// Bytes of one file; 32 GiB by default.
    pub file_bytes: u64,
    /// Its processes and threads; 2,000 by default.
    pub processes: usize,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self { memory_bytes: total_memory() / 4 * 3, file_bytes: 32 * GIB_BYTES, processes: 2_000 }
    }
}

impl CommandLimits {
    /// Applies the limits to this process and its descendants. No limit is ever raised.
    ///
    /// Does not allocate, lock or panic: it is called between fork and exec.
    pub(crate) fn apply(&self) -> Result<(), Errno> {
        lower(Resource::Core, 0)?;
        lower(Resource::Nofile, MAX_OPEN_FILES)?;
        lower(Resource::Fsize, self.file_bytes)?;
        lower(Resource::Data, self.memory_bytes)?;
        if !rustix::process::getuid().is_root() {
            lower(Resource::Nproc, MAX_USER_PROCESSES)?;
        }
        Ok(())
    }
}

fn lower(resource: Resource, limit: u64) -> Result<(), Errno> {
    let Rlimit { current, maximum } = getrlimit(resource);
    // `None` means unlimited.
    let maximum = maximum.map_or(limit, |maximum| maximum.min(limit));
    let current = current.map_or(maximum, |current| current.min(maximum));
    setrlimit(resource, Rlimit { current: Some(current), maximum: Some(maximum) })
}

/// Bytes of memory of this machine, or of the container around Haft.
fn total_memory() -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(|| {
        let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
        let cgroup = files.iter().find_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
        physical_memory().unwrap_or(DEFAULT_MEMORY_BYTES).min(cgroup.unwrap_or(u64::MAX)).max(GIB_BYTES)
    })
}

#[expect(unsafe_code, reason = "sysconf has no safe wrapper")]
fn physical_memory() -> Option<u64> {
    // SAFETY: sysconf only returns numbers.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(size).ok()?)
}
