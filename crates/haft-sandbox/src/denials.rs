//! What the sandbox refused to a command.

use haft_tool::Denial;

/// Further denials are dropped.
const MAX_DENIALS: usize = 100;

/// The denials of one command; repeated ones are counted.
#[derive(Debug, Default)]
pub(crate) struct DenialList {
    list: Vec<Denial>,
}

impl DenialList {
    pub(crate) fn add(&mut self, what: &str, place: String, rule: impl Into<String>, allow: Option<String>) {
        if let Some(known) = self.list.iter_mut().find(|denial| denial.what == what && denial.place == place)
        {
            known.times = known.times.saturating_add(1);
            return;
        }
        if self.list.len() < MAX_DENIALS {
            self.list.push(Denial { what: what.to_owned(), place, rule: rule.into(), allow, times: 1 });
        }
    }

    pub(crate) fn into_list(self) -> Vec<Denial> {
        self.list
    }
}
