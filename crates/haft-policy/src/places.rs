//! Paths outside the roots.

use haft_tool::{Effect, Reads};

use crate::Policy;
use crate::command::EffectView;

/// Whether a write leaves the roots of a dialect that is held to them, and no rule names its path. The World refuses
/// it, in the words of the dialect.
pub(crate) fn leads_out(tool: &str, view: &EffectView<'_>, policy: &Policy) -> bool {
    let outside = matches!(view.effect, Effect::Write { path } if policy.scope.root_of(path).is_none());
    outside && policy.scope.reads == Reads::Roots && policy.rules.granting(tool, view).is_none()
}

/// Whether the scope needs a grant for a path, because it is outside the roots.
pub(crate) fn needs_a_grant(tool: &str, view: &EffectView<'_>, policy: &Policy) -> bool {
    match view.effect {
        Effect::Write { path } => {
            let outside = policy.scope.root_of(path).is_none() || policy.scope.is_write_blocked(path);
            outside && !leads_out(tool, view, policy)
        }
        // Where only the roots are read, a rule that names a path opens just that.
        Effect::Read { path } => {
            policy.scope.reads == Reads::Roots
                && policy.scope.root_of(path).is_none()
                && policy.rules.granting(tool, view).is_some()
        }
        _ => false,
    }
}
