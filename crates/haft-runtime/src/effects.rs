//! The effects of a call: those that its tool plans, with the paths that links lead to.

use std::path::Path;
use std::sync::Arc;

use haft_files::real_named;
use haft_tool::{Call, Effect, ToolError};

use crate::Runtime;
use crate::registry::RegisteredTool;
use crate::runtime::RuntimeInner;
use crate::steps::decode::{self, CheckedArguments};
use crate::steps::perform::catch_panic;

impl RegisteredTool {
    /// Checks that arguments fit the tool's schema. Those of a server's tool are checked by the server.
    pub(crate) fn check(&self, arguments: haft_tool::Value) -> Result<CheckedArguments, ToolError> {
        if self.tool.is_remote() {
            decode::unchecked(self.tool.name(), arguments)
        } else {
            decode::check(self.definition(), arguments, self.tool.clamp_numbers())
        }
    }
}

impl RuntimeInner {
    /// The effects and, for each path that leads to another one, the effect on that: both are judged. The World refuses what
    /// leaves the roots, in the dialect's words.
    pub(crate) fn with_resolved_paths(&self, effects: &[Effect]) -> Vec<Effect> {
        let mut all = effects.to_vec();
        // An undo does not follow links.
        if effects.iter().any(|effect| matches!(effect, Effect::Undo { .. })) {
            return all;
        }
        let scope = &self.policy.scope;
        let resolved = |path: &Path| {
            let real = real_named(path).ok()?;
            let leaves = scope.root_of(path).is_some() && scope.root_of(&real).is_none();
            (real != *path && !leaves).then_some(real)
        };
        all.extend(effects.iter().filter_map(|effect| match effect {
            Effect::Read { path } => resolved(path).map(|path| Effect::Read { path }),
            Effect::Write { path } => resolved(path).map(|path| Effect::Write { path }),
            _ => None,
        }));
        all
    }
}

impl Runtime {
    /// What a call would touch, with the paths that links lead to now. Makes no call and connects no server; a call that cannot
    /// be planned is an error.
    pub fn planned_effects(&self, call: &Call) -> Result<Vec<Effect>, ToolError> {
        let entry = self.inner.find(&call.tool)?;
        let decoded = entry.check(decode::parse(call.arguments.clone())?)?;
        let plan = || Arc::clone(&entry.tool).plan(decoded.arguments, &self.inner.env.planning);
        Ok(self.inner.with_resolved_paths(&catch_panic(plan)?.effects))
    }
}
