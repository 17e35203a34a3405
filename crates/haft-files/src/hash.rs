//! The one name by which bytes are known.

use haft_tool::Hash;

/// The hash of `bytes`, as changes and receipts write it.
pub fn hash(bytes: &[u8]) -> Hash {
    blake3::hash(bytes).to_hex().to_string()
}
