//! Running a few programs side by side.

use std::sync::atomic::{AtomicUsize, Ordering};

use haft_tool::ToolError;

const MAX_RUNNING: usize = 5;

/// Limits how many programs run at once in this process.
#[derive(Default)]
pub(crate) struct SpawnSlots {
    running: AtomicUsize,
}

impl SpawnSlots {
    /// Takes a slot, which is free again when the result is dropped.
    pub(crate) fn take(&self) -> Result<SpawnSlot<'_>, ToolError> {
        let increment = |count| (count < MAX_RUNNING).then_some(count + 1);
        match self.running.fetch_update(Ordering::AcqRel, Ordering::Acquire, increment) {
            Ok(_) => Ok(SpawnSlot(&self.running)),
            Err(count) => Err(ToolError::failed(format!(
                "{count} spawned programs are running already, and {MAX_RUNNING} is the limit; wait until one has ended"
            ))),
        }
    }
}

pub(crate) struct SpawnSlot<'a>(&'a AtomicUsize);

impl Drop for SpawnSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Quotes a word for a shell, so that rules can match the command.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quote("--release"), "--release");
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
        assert_eq!(quote("$(x)"), "'$(x)'");
    }

    #[test]
    fn sixth_program_is_refused_until_one_has_ended() {
        let slots = SpawnSlots::default();
        let taken: Vec<_> = (0..MAX_RUNNING).map(|_| slots.take().unwrap()).collect();
        let error = slots.take().err().unwrap();
        assert_eq!(error.kind, haft_tool::ErrorKind::ExecutionFailed);
        assert!(error.message.contains("5 is the limit"), "{error}");
        drop(taken);
        assert!(slots.take().is_ok());
    }
}
