//! The ledger's promises, each as a test, through its public door.
#![expect(clippy::disallowed_methods, reason = "the tests look at the ledger's own files and damage them")]

#[cfg(test)]
mod blobs;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod events;
#[cfg(test)]
mod gc;
#[cfg(test)]
mod home;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod moves;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod setting;
#[cfg(test)]
mod spool;
#[cfg(test)]
mod together;
#[cfg(test)]
mod undo;
