//! Drops privileges, also of root.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Leaves this process and its descendants without other capabilities and without a way to get any.
///
/// Does not allocate, lock or panic: it is called between fork and exec.
pub(super) fn drop_all_but(kept: CapabilitySet) -> Result<(), Errno> {
    rustix::thread::set_no_new_privs(true)?;
    match rustix::thread::clear_ambient_capability_set() {
        // Linux before 4.3 has no ambient set.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(error),
    }
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if kept.contains(capability) {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The first unknown capability; or no permission, and then no_new_privs already prevents new ones.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(error),
        }
    }
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )
}
