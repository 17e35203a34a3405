//! What several hooks of one event mean together.

use super::outcome::clipped;
use super::{HookBehavior, HookDecision, HookOutcome, HookPermissionAnswer, HookStop};

/// Texts of each kind that a merged outcome keeps.
const MAX_MERGED_ENTRIES: usize = 100;

impl HookOutcome {
    /// Merges outcomes that are in the order in which their hooks are configured, whatever the order in which they ended.
    ///
    /// The strongest decision wins: deny, defer, ask, allow; its reason is that of all hooks that said the same. Of several
    /// new arguments or tool outputs the last wins, and [`has_conflicting_inputs`](Self::has_conflicting_inputs) says that
    /// there were different ones; a denied call has none. One refusal of a permission request outweighs all permissions.
    /// Contexts, messages and failures are concatenated, 100 of each at most.
    pub fn merge(outcomes: impl IntoIterator<Item = Self>) -> Self {
        let mut merged = Self::default();
        let mut count = 0_usize;
        let mut detached_count = 0_usize;
        for outcome in outcomes {
            count += 1;
            detached_count += usize::from(outcome.is_detached);
            merged.add(outcome);
        }
        merged.is_detached = count > 0 && detached_count == count;
        if merged.decision.as_ref().is_some_and(|decision| decision.behavior == HookBehavior::Deny) {
            merged.updated_input = None;
        }
        for texts in [
            &mut merged.additional_context,
            &mut merged.system_messages,
            &mut merged.texts,
            &mut merged.failures,
        ] {
            texts.truncate(MAX_MERGED_ENTRIES);
        }
        merged
    }

    fn add(&mut self, next: Self) {
        self.decision = stronger(self.decision.take(), next.decision);
        self.has_conflicting_inputs |= next.has_conflicting_inputs;
        if let Some(input) = next.updated_input {
            let previous = self.updated_input.replace(input);
            self.has_conflicting_inputs |= previous.is_some() && previous != self.updated_input;
        }
        self.additional_context.extend(next.additional_context);
        self.updated_tool_output = next.updated_tool_output.or(self.updated_tool_output.take());
        self.system_messages.extend(next.system_messages);
        self.stop = match (self.stop.take(), next.stop) {
            (Some(first), Some(second)) => Some(HookStop { reason: joined(first.reason, second.reason) }),
            (first, second) => first.or(second),
        };
        self.suppress_output |= next.suppress_output;
        self.permission_answer = match (self.permission_answer.take(), next.permission_answer) {
            (Some(first @ HookPermissionAnswer::Deny { .. }), _) => Some(first),
            (first, second) => second.or(first),
        };
        self.retry |= next.retry;
        self.texts.extend(next.texts);
        self.failures.extend(next.failures);
    }
}

fn stronger(first: Option<HookDecision>, second: Option<HookDecision>) -> Option<HookDecision> {
    let (Some(first), Some(second)) = (&first, &second) else { return first.or(second) };
    let winner = match first.behavior.cmp(&second.behavior) {
        std::cmp::Ordering::Greater => first.clone(),
        std::cmp::Ordering::Less => second.clone(),
        std::cmp::Ordering::Equal => {
            let reason = joined(first.reason.clone(), second.reason.clone());
            HookDecision { behavior: first.behavior, reason }
        }
    };
    Some(winner)
}

fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) if first != second => Some(clipped(&format!("{first}\n{second}"))),
        (first, second) => first.or(second),
    }
}
