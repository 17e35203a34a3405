//! Records what a sandboxed command changes: by the witness, or by comparing before and after.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use haft_policy::build_files;
use haft_tool::{Change, Denial, Record, Scope, ToolError, is_git_index, lock};
use rustix::fs::{Mode, OFlags};

use super::drain::Waker;
use crate::session::CommandSandbox;
use crate::snapshot::Snapshot;

/// A larger list of git objects is not kept: one of nine million objects.
const MAX_INDEX_BYTES: u64 = 1 << 28;

/// What a recording is made of.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux uses it"))]
pub(super) struct RecordingSetup {
    pub(super) sandbox: CommandSandbox,
    /// The state before the command, where there is no witness.
    pub(super) snapshot: Option<Snapshot>,
    pub(super) scope: Arc<Scope>,
    pub(super) record: Arc<dyn Record>,
    pub(super) reaper: i32,
    pub(super) waker: Arc<Waker>,
    /// Whether the command has Haft's own streams.
    pub(super) inherits_streams: bool,
}

/// What is known of a command when it has ended.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) denials: Vec<Denial>,
    /// Why Haft ended the command, if it used too many resources.
    pub(super) limit_exceeded: Option<String>,
    /// Changed files that programs run when the project is built or run, as paths in the workspace.
    pub(super) runs_on_build: Vec<String>,
}

/// The recording of a running command.
pub(super) struct Recording {
    setup: RecordingSetup,
    #[cfg(target_os = "linux")]
    witness: Option<crate::linux::Witness>,
}

impl Recording {
    /// Starts the witness, if there is one.
    pub(super) fn start(setup: RecordingSetup) -> Result<Self, ToolError> {
        setup.record.enforced(setup.sandbox.enforcement.clone());
        #[cfg(target_os = "linux")]
        return Self::start_witness(setup);
        #[cfg(not(target_os = "linux"))]
        Ok(Self { setup })
    }

    #[cfg(target_os = "linux")]
    fn start_witness(mut setup: RecordingSetup) -> Result<Self, ToolError> {
        let (waker, record) = (Arc::clone(&setup.waker), Arc::clone(&setup.record));
        let (reaper, inherits_streams) = (setup.reaper, setup.inherits_streams);
        let on_refused = setup.sandbox.on_refused.take();
        let start = |config| {
            let end = Box::new(move || waker.wake());
            crate::linux::Witness::start(config, record, reaper, end, inherits_streams, on_refused)
        };
        let witness = setup.sandbox.witness.take().map(start).transpose();
        let failed = |error| ToolError::io("The command's witness cannot be started", &error);
        Ok(Self { witness: witness.map_err(failed)?, setup })
    }

    /// Reports the command's changes and denials to its record. All its processes must have ended.
    pub(super) fn finish(self) -> Result<Observed, ToolError> {
        let RecordingSetup { sandbox, snapshot, scope, record, .. } = self.setup;
        let mut observed = Observed::default();
        #[cfg(target_os = "linux")]
        if let Some(witness) = self.witness {
            let seen = witness.finish()?;
            let runs_on_build = build_files(&seen.changes, &scope.workspace);
            report(&*record, seen.changes, seen.losses);
            observed = Observed { denials: seen.denials, limit_exceeded: seen.limit_exceeded, runs_on_build };
        }
        if let Some(snapshot) = snapshot {
            let difference = snapshot.compare(&scope, &*record)?;
            observed.runs_on_build = build_files(&difference.changes, &scope.workspace);
            report(&*record, difference.changes, difference.losses);
            observed.denials.extend(difference.denials);
        }
        observed.denials.extend(std::mem::take(&mut *lock(&sandbox.refused)).into_list());
        record.refused(&observed.denials);
        Ok(observed)
    }
}

fn report(record: &dyn Record, changes: Vec<Change>, losses: Vec<String>) {
    keep_indexes(record, &changes);
    record.witnessed(changes);
    for loss in losses {
        record.not_reversible(loss);
    }
}

/// Keeps the lists of git objects that the command wrote: others may pack these objects again. A list that is not kept
/// counts as one of all objects.
fn keep_indexes(record: &dyn Record, changes: &[Change]) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let written = changes.iter().filter(|change| is_git_index(&change.path));
    for change in written.filter(|change| change.after.as_file().is_some()) {
        let file = rustix::fs::open(&change.path, flags, Mode::empty()).map(File::from);
        if let Ok(file) = file
            && file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_INDEX_BYTES)
        {
            drop(record.keep_index(&mut file.take(MAX_INDEX_BYTES)));
        }
    }
}
