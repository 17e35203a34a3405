//! The steps of a call, one file each. `plan` is the tool's own, `decide` is haft-policy's, `record` is
//! haft-ledger's.

pub(crate) mod ask;
pub(crate) mod bound;
pub(crate) mod decode;
pub(crate) mod perform;
pub(crate) mod preview;
