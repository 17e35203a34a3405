//! What the sandbox refused to a command.

use std::sync::Arc;

use haft_tool::Denial;

/// Further denials are dropped.
const MAX_DENIALS: usize = 100;
/// Files that programs try to write and do without: nothing is reported. A star is the rest of a name.
const HARMLESS_WRITES: &[&str] = &[
    // Java.
    "/proc/*/coredump_filter",
    "/tmp/hsperfdata_*/*",
    // Debuggers and valgrind, which then use ptrace.
    "/proc/*/mem",
    "/proc/*/task/*/mem",
    // Servers and browsers.
    "/proc/*/oom_score_adj",
    "/proc/*/oom_adj",
    "/proc/*/timerslack_ns",
    // Names of threads.
    "/proc/*/comm",
    "/proc/*/task/*/comm",
];

/// Receives each refusal, also repeated and dropped ones, before the program goes on. It must not block.
pub type RefusalSink = Arc<dyn Fn(&Denial) + Send + Sync>;

/// The denials of one command; repeated ones are counted.
#[derive(Default)]
pub(crate) struct DenialList {
    list: Vec<Denial>,
    on_refused: Option<RefusalSink>,
}

impl DenialList {
    pub(crate) fn new(on_refused: Option<RefusalSink>) -> Self {
        Self { list: Vec::new(), on_refused }
    }

    /// Adds a denial; returns it if it is a new one.
    pub(crate) fn add(
        &mut self,
        what: &str,
        place: String,
        rule: impl Into<String>,
        allow: Option<String>,
    ) -> Option<&Denial> {
        if what == "write" && HARMLESS_WRITES.iter().any(|pattern| matches(pattern, &place)) {
            return None;
        }
        if let Some(known) = self.list.iter_mut().find(|denial| denial.what == what && denial.place == place)
        {
            known.times = known.times.saturating_add(1);
            if let Some(on_refused) = &self.on_refused {
                on_refused(known);
            }
            return None;
        }
        let denial = Denial { what: what.to_owned(), place, rule: rule.into(), allow, times: 1 };
        if let Some(on_refused) = &self.on_refused {
            on_refused(&denial);
        }
        if self.list.len() >= MAX_DENIALS {
            return None;
        }
        self.list.push(denial);
        self.list.last()
    }

    pub(crate) fn into_list(self) -> Vec<Denial> {
        self.list
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    let (mut names, mut patterns) = (path.split('/'), pattern.split('/'));
    loop {
        match (patterns.next(), names.next()) {
            (None, None) => return true,
            (Some(pattern), Some(name)) => {
                let is_match =
                    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start));
                if !is_match {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_writes_are_not_reported() {
        let mut denials = DenialList::default();
        let reported =
            ["/proc/12/environ", "/proc/12/mem/x", "/proc/mem", "/tmp/hsperfdata_me", "/tmp/hsper_x/1"];
        for place in
            ["/proc/12/mem", "/proc/12/task/13/mem", "/tmp/hsperfdata_me/7"].into_iter().chain(reported)
        {
            denials.add("write", place.to_owned(), "outside the scope", None);
        }
        denials.add("read", "/proc/12/mem".to_owned(), "not its own", None);
        let places: Vec<String> = denials.into_list().into_iter().map(|denial| denial.place).collect();
        assert_eq!(places, [&reported[..], &["/proc/12/mem"]].concat());
    }
}
