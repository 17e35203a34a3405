//! Drops the capabilities of this thread for a moment.
//!
//! A command has no capabilities, even as root. The scope decides what it may write, so the witness writes with its own
//! capabilities. But what the witness reads for a command, the command must be able to read itself.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// The capabilities of the witness, if it has any.
#[derive(Debug)]
pub(super) struct WitnessCapabilities {
    sets: Option<CapabilitySets>,
}

impl WitnessCapabilities {
    /// The capabilities of this thread.
    pub(super) fn current() -> Self {
        Self { sets: capabilities(None).ok().filter(|sets| !sets.effective.is_empty()) }
    }

    /// Calls `action` without capabilities.
    pub(super) fn without<T>(&self, action: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        let Some(sets) = self.sets else { return action() };
        set_capabilities(None, CapabilitySets { effective: CapabilitySet::empty(), ..sets })
            .map_err(|_| Errno::ACCESS)?;
        let result = action();
        // The permitted set is unchanged, so this cannot fail.
        let _ = set_capabilities(None, sets);
        result
    }
}
