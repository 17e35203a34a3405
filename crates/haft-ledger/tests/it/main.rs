//! The ledger's promises, through its public interface.
#![expect(clippy::disallowed_methods, reason = "the tests read the ledger's own files and damage them")]

#[cfg(test)]
mod blobs;
#[cfg(test)]
mod concurrency;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod directory;
#[cfg(test)]
mod event_search;
mod events;
#[cfg(test)]
mod feed;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod gc;
#[cfg(test)]
mod hostile;
mod inbox;
#[cfg(test)]
mod moves;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod results;
#[cfg(test)]
mod search;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod spool;
#[cfg(test)]
mod undo;
#[cfg(test)]
mod undo_conflicts;
