//! Giving up every privilege, also for root.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Leaves the calling process, and all that it starts, without capabilities and without a way to get any.
///
/// Nothing here allocates, locks or panics: it is called between fork and exec.
pub(crate) fn drop_all() -> Result<(), Errno> {
    rustix::thread::set_no_new_privs(true)?;
    match rustix::thread::clear_ambient_capability_set() {
        // Kernels before 4.3 have no such set.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(error),
    }
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The first that the kernel does not know, or no right to lower the bound: then it bounds nothing that
            // this process could still get, since no_new_privs holds.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(error),
        }
    }
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )
}
