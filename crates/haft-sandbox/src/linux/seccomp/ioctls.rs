//! Which `ioctl` requests are refused.
//!
//! Some requests of file systems change a file, or the whole file system, through a read-only descriptor. There are too many
//! of them to list, so only known harmless ones are allowed.

use super::assembler::{and, argument_offset, jump, load, ret};
use super::{ALLOW, refuse};

/// Requests that type into a terminal, or make it unusable.
pub(super) const REFUSED: &[u32] = &[
    0x5412, // TIOCSTI
    0x541c, // TIOCLINUX
    0x541d, // TIOCCONS
    0x541f, // TIOCSSERIAL
    0x5423, // TIOCSETD
    0x5437, // TIOCVHANGUP
];
/// Requests that choose who gets the signals of a descriptor.
pub(super) const REFUSED_SIGNALS: &[u32] = &[
    0x8901, // FIOSETOWN
    0x8902, // SIOCSPGRP
];
/// Requests of file systems that only read, or need a descriptor for writing.
pub(super) const ALLOWED: &[u32] = &[
    0x8008_6601, // FS_IOC_GETFLAGS
    0x8004_6601, // FS_IOC32_GETFLAGS
    0x8008_6603, // EXT4_IOC_GETVERSION
    0xc020_660b, // FS_IOC_FIEMAP
    0xc004_6686, // FS_IOC_MEASURE_VERITY
    0x801c_581f, // FS_IOC_FSGETXATTR
    0x8008_7601, // FS_IOC_GETVERSION
    0x4004_9409, // FICLONE
    0x4020_940d, // FICLONERANGE
    0xc018_9436, // FIDEDUPERANGE
    0x8100_9431, // FS_IOC_GETFSLABEL
    0x8400_941f, // BTRFS_IOC_FS_INFO
];
/// The bits of a request that say whose it is.
const TYPE_MASK: u32 = 0xff00;
/// All others of these are refused.
pub(super) const FILE_SYSTEM_TYPES: &[u32] = &[
    0x5800, // XFS, and all file systems
    0x6600, // ext4, and all file systems
    0x7200, // FAT
    0x7600, // ext2, and all file systems
    0x9400, // Btrfs, and all file systems
    0xbc00, // bcachefs
    0xf500, // F2FS
];

/// The rule for `ioctl`.
pub(super) fn ioctl_rule(scopes_signals: bool) -> Vec<libc::sock_filter> {
    let signals = if scopes_signals { &[][..] } else { REFUSED_SIGNALS };
    let refused = [REFUSED, signals].concat();
    // Behind the tests and the mask are two results.
    let allow = 1 + refused.len() + ALLOWED.len() + 1 + FILE_SYSTEM_TYPES.len();
    let mut rule = vec![load(argument_offset(1))];
    let test = |rule: &mut Vec<_>, value: u32, result: usize| {
        let distance = u8::try_from(result - rule.len() - 1).unwrap_or_default();
        rule.push(jump(libc::BPF_JEQ, value, distance, 0));
    };
    for request in refused {
        test(&mut rule, request, allow + 1);
    }
    for request in ALLOWED {
        test(&mut rule, *request, allow);
    }
    rule.push(and(TYPE_MASK));
    for kind in FILE_SYSTEM_TYPES {
        test(&mut rule, *kind, allow + 1);
    }
    rule.extend([ret(ALLOW), ret(refuse(libc::EPERM))]);
    rule
}
