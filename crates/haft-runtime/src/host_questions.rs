//! Asks the user about hosts that a command wants to reach and that are not listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use haft_sandbox::{HostAsker, UnlistedHost};
use haft_tool::{Cancel, Host, HostAnswer, HostRequest, lock};

use crate::world::SessionEnv;

/// The most questions of one command, so that a program cannot wear the user down. Further hosts are refused.
const MAX_QUESTIONS_COUNT: usize = 20;

/// The entries that the user allowed until the session ends.
pub(crate) type AllowedHosts = Mutex<BTreeSet<String>>;

/// Asks about each host once per command.
pub(crate) struct HostQuestions {
    env: Arc<SessionEnv>,
    host: Arc<dyn Host>,
    command: String,
    /// The answers for this command, by entry.
    answers: Mutex<BTreeMap<String, bool>>,
}

impl HostQuestions {
    pub(crate) fn new(env: Arc<SessionEnv>, host: Arc<dyn Host>, command: String) -> Self {
        Self { env, host, command, answers: Mutex::default() }
    }

    fn known(&self, entry: &str) -> Option<bool> {
        if lock(&self.env.commands.allowed_hosts).contains(entry) {
            return Some(true);
        }
        lock(&self.answers).get(entry).copied()
    }
}

impl HostAsker for HostQuestions {
    fn allows(&self, host: &UnlistedHost, cancel: &Cancel) -> bool {
        if let Some(known) = self.known(&host.entry) {
            return known;
        }
        let _one_at_a_time = lock(&self.env.asking);
        // Another connection to the same host may have been answered meanwhile.
        if let Some(known) = self.known(&host.entry) {
            return known;
        }
        if cancel.is_cancelled() || lock(&self.answers).len() >= MAX_QUESTIONS_COUNT {
            return false;
        }
        let request = HostRequest {
            command: self.command.clone(),
            host: host.host.clone(),
            port: host.port,
            entry: host.entry.clone(),
        };
        // A question without an answer is not asked again.
        let answer = self.host.may_reach(&request, cancel).unwrap_or(HostAnswer::Refuse);
        if matches!(answer, HostAnswer::Session | HostAnswer::Project) {
            lock(&self.env.commands.allowed_hosts).insert(host.entry.clone());
        }
        let allowed = answer != HostAnswer::Refuse;
        lock(&self.answers).insert(host.entry.clone(), allowed);
        allowed
    }
}
