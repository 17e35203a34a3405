//! What was refused, as facts.

use haft_tool::Denial;

/// More are counted, not told.
const MOST: usize = 100;

/// The refusals of one command, each told once.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    list: Vec<Denial>,
}

impl Denials {
    pub(crate) fn add(&mut self, what: &str, place: String, rule: impl Into<String>, allow: Option<String>) {
        if let Some(known) = self.list.iter_mut().find(|denial| denial.what == what && denial.place == place)
        {
            known.times = known.times.saturating_add(1);
            return;
        }
        if self.list.len() < MOST {
            self.list.push(Denial { what: what.to_owned(), place, rule: rule.into(), allow, times: 1 });
        }
    }

    pub(crate) fn into_list(self) -> Vec<Denial> {
        self.list
    }
}
