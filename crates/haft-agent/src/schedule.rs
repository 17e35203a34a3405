//! Which calls of one answer may run together: a pure function over their effects.

use std::path::Path;

use haft_tool::{Effect, lies_in};

/// What a call touches; `None` if that is not known, which conflicts with everything.
pub type CallEffects = Option<Vec<Effect>>;

/// For each call, the earlier ones that it has to wait for. A call whose effects are not known waits for all before it, so those
/// need not be listed again: an answer may have tens of thousands of calls.
pub fn earlier_conflicts(calls: &[CallEffects]) -> Vec<Vec<usize>> {
    let mut last_unknown = 0;
    let mut all = Vec::with_capacity(calls.len());
    for (at, call) in calls.iter().enumerate() {
        all.push((last_unknown..at).filter(|earlier| conflict(&calls[*earlier], call)).collect());
        if call.is_none() {
            last_unknown = at;
        }
    }
    all
}

/// Whether a call only looks at files and at the session, so that it may run before the answer is complete.
pub fn only_reads(effects: &CallEffects) -> bool {
    let reads = |effect: &Effect| matches!(effect, Effect::Read { .. } | Effect::Inspect { .. });
    effects.as_ref().is_some_and(|effects| effects.iter().all(reads))
}

/// Whether the order of two calls may matter.
fn conflict(one: &CallEffects, other: &CallEffects) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return true };
    one.iter().any(|effect| other.iter().any(|with| effects_conflict(effect, with)))
}

fn effects_conflict(one: &Effect, other: &Effect) -> bool {
    interferes(one, other) || interferes(other, one)
}

/// Whether the first effect may change what the second one meets. Without a wildcard, so that a new effect is thought about.
fn interferes(one: &Effect, other: &Effect) -> bool {
    match one {
        Effect::Read { .. } | Effect::Inspect { .. } | Effect::Reach { .. } => false,
        Effect::Write { path } => match other {
            Effect::Read { path: with } | Effect::Write { path: with } => overlap(path, with),
            _ => false,
        },
        Effect::Note { name } => match other {
            Effect::Note { name: with } => name == with,
            Effect::Inspect { .. } => true,
            _ => false,
        },
        Effect::Send { channel } => matches!(other, Effect::Send { channel: with } if channel == with),
        Effect::StopTask { .. } => matches!(other, Effect::Inspect { .. } | Effect::StopTask { .. }),
        // Agents work side by side; the other calls of the answer are not theirs.
        Effect::Spawn { .. } => !matches!(other, Effect::Spawn { .. }),
        Effect::Serve { server, writes: false, .. } => {
            matches!(other, Effect::Serve { server: with, .. } if server == with)
        }
        // The answer may change what the user allows.
        Effect::Ask => !matches!(other, Effect::Read { .. } | Effect::Inspect { .. } | Effect::Reach { .. }),
        Effect::Serve { writes: true, .. }
        | Effect::Run { .. }
        | Effect::Configure { .. }
        | Effect::Undo { .. }
        | Effect::Unsandboxed => true,
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    lies_in(one, other) || lies_in(other, one)
}

#[cfg(test)]
#[expect(clippy::unnecessary_wraps, reason = "the effects of a call may be unknown")]
mod tests {
    use super::*;

    fn read(path: &str) -> CallEffects {
        Some(vec![Effect::Read { path: path.into() }])
    }

    fn write(path: &str) -> CallEffects {
        Some(vec![Effect::Read { path: path.into() }, Effect::Write { path: path.into() }])
    }

    fn run() -> CallEffects {
        Some(vec![Effect::Run { command: "make".to_owned() }])
    }

    fn spawn() -> CallEffects {
        Some(vec![Effect::Spawn { agent: "explorer".to_owned() }])
    }

    fn serve(server: &str, writes: bool) -> CallEffects {
        Some(vec![Effect::Serve { server: server.to_owned(), reaches: false, writes }])
    }

    #[test]
    fn only_calls_that_may_meet_wait_for_each_other() {
        let waits = |calls: &[CallEffects]| earlier_conflicts(calls);
        assert_eq!(waits(&[read("/a"), read("/a"), read("/b")]), [const { Vec::<usize>::new() }; 3]);
        assert_eq!(waits(&[write("/a"), write("/b"), write("/a")]), [vec![], vec![], vec![0]]);
        assert_eq!(waits(&[write("/a/x"), read("/a"), read("/a/xy")]), [vec![], vec![0], vec![]]);
        assert_eq!(waits(&[read("/a"), run(), read("/b")]), [vec![], vec![0], vec![1]]);
        assert_eq!(waits(&[read("/a"), None, read("/b")]), [vec![], vec![0], vec![1]]);
        assert_eq!(waits(&[spawn(), spawn(), read("/b")]), [vec![], vec![], vec![0, 1]]);
        assert_eq!(
            waits(&[serve("a", false), serve("a", false), serve("b", false)]),
            [vec![], vec![0], vec![]]
        );
        assert_eq!(waits(&[serve("a", true), serve("b", false), read("/x")]), [vec![], vec![0], vec![0]]);
    }

    #[test]
    fn a_call_runs_early_only_if_all_it_does_is_known_and_read() {
        assert!(only_reads(&read("/a")) && only_reads(&Some(Vec::new())));
        assert!(!only_reads(&write("/a")) && !only_reads(&run()) && !only_reads(&None));
        assert!(!only_reads(&Some(vec![Effect::Reach { host: "example.com".to_owned() }])));
    }
}
