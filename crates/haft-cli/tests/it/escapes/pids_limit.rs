//! A limit on the processes of a whole run, so that a fork bomb that Haft fails to stop does not take the machine down.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Twice what Haft itself allows a command.
const MAX_PIDS: &str = "4000";
/// How often the remaining processes are killed.
const KILL_ROUNDS: usize = 10_000;

/// A control group, if one can be created; only root can.
pub(crate) struct PidsLimit {
    folder: Option<PathBuf>,
}

impl PidsLimit {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("haft-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].iter().find_map(|base| {
            let folder = Path::new(base).join(&name);
            fs::create_dir(&folder).ok()?;
            let bounded = fs::write(folder.join("pids.max"), MAX_PIDS).is_ok();
            if !bounded {
                let _ = fs::remove_dir(&folder);
            }
            bounded.then_some(folder)
        });
        Self { folder }
    }

    /// Starts the command inside the control group.
    #[expect(unsafe_code, reason = "a process is put into a control group between fork and exec")]
    pub(crate) fn hold(&self, command: &mut Command) {
        let Some(folder) = &self.folder else { return };
        // Opened here, by root: the child may run as another user when it writes.
        let mut procs = OpenOptions::new().write(true).open(folder.join("cgroup.procs")).unwrap();
        // SAFETY: between fork and exec nothing happens but one write to an open file.
        unsafe { command.pre_exec(move || procs.write_all(b"0")) };
    }
}

impl Drop for PidsLimit {
    fn drop(&mut self) {
        let Some(folder) = &self.folder else { return };
        for _ in 0..KILL_ROUNDS {
            if fs::remove_dir(folder).is_ok() {
                return;
            }
            let left = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            if !left.trim().is_empty() {
                let _ = Command::new("kill")
                    .arg("-KILL")
                    .args(left.split_whitespace())
                    .stderr(Stdio::null())
                    .status();
            }
            std::thread::yield_now();
        }
    }
}
