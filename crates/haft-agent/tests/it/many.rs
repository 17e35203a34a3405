//! Many agents in one process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex};

use haft_agent::{AgentRun, NoObserver, RunParts, RunSettings, RunStop};
use haft_model::{Model, ModelError, ModelEvent, ModelResponse, ScriptModel, TurnRequest};
use haft_tool::Cancel;

use crate::fixture::{Workbench, text};

const AGENTS: usize = 1_000;
const ROUNDS: usize = 4;
/// One of so many agents has a slow model.
const SLOW_SHARE: usize = 10;
/// Memory of an agent beyond its conversation, with a dialect of few tools: each runtime has the definitions of its own.
const MAX_AGENT_BYTES: usize = 200 << 10;
const AGENT_STACK_BYTES: usize = 512 << 10;

/// What the agents have in common.
struct Crowd {
    /// Reached when all agents have asked their models for the first time, and again when the memory is known.
    all_ask: Barrier,
    /// How many of the agents with fast models are done.
    fast_done: Mutex<usize>,
    one_is_done: Condvar,
}

impl Crowd {
    fn add_done(&self) {
        *self.fast_done.lock().unwrap() += 1;
        self.one_is_done.notify_all();
    }

    fn wait_for_fast_ones(&self) {
        let done = self.fast_done.lock().unwrap();
        drop(self.one_is_done.wait_while(done, |done| *done < AGENTS - AGENTS / SLOW_SHARE).unwrap());
    }
}

/// A script that is played when all agents are there.
struct CrowdModel {
    script: ScriptModel,
    number: usize,
    asked: AtomicUsize,
    crowd: Arc<Crowd>,
}

impl Model for CrowdModel {
    fn provider(&self) -> &str {
        self.script.provider()
    }

    fn model(&self) -> &str {
        self.script.model()
    }

    fn respond(
        &self,
        request: &TurnRequest<'_>,
        on_event: &mut dyn FnMut(ModelEvent),
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        // The second request: a call has been made by then, so that what calls leave behind is counted.
        match self.asked.fetch_add(1, Ordering::Relaxed) {
            1 => {
                self.crowd.all_ask.wait();
                self.crowd.all_ask.wait();
            }
            // The others do not wait for it.
            2 if self.number.is_multiple_of(SLOW_SHARE) => self.crowd.wait_for_fast_ones(),
            _ => {}
        }
        self.script.respond(request, on_event, cancel)
    }
}

/// The memory of this process in bytes.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4_096
}

#[test]
fn a_thousand_agents_in_one_process_finish_with_little_memory_each_and_none_waits_for_a_slow_one() {
    let bench = Workbench::new();
    bench.write("a.txt", "tea\n");
    let calls = bench.calls(&[("read", serde_json::json!({"path": "@/a.txt"}))]);
    let script = format!("{}{{\"text\": \"Done.\"}}\n", format!("{calls}\n").repeat(ROUNDS));
    let crowd = Arc::new(Crowd {
        all_ask: Barrier::new(AGENTS + 1),
        fast_done: Mutex::default(),
        one_is_done: Condvar::new(),
    });
    let ledger = bench.runtime(None).ledger().unwrap();
    let before = resident_bytes();
    let agent = |number: usize| {
        let script = ScriptModel::parse(&script).unwrap();
        let model = CrowdModel { script, number, asked: AtomicUsize::new(0), crowd: Arc::clone(&crowd) };
        let parts = RunParts::new(bench.runtime_with(ledger.clone(), "omega"), Arc::new(model)).unwrap();
        let mut run = AgentRun::start(parts, RunSettings::default(), Vec::new()).unwrap();
        let crowd = Arc::clone(&crowd);
        std::thread::Builder::new().stack_size(AGENT_STACK_BYTES).spawn(move || {
            let report = run.say(text("Go."), &mut NoObserver, &Cancel::new()).unwrap();
            if !number.is_multiple_of(SLOW_SHARE) {
                crowd.add_done();
            }
            (report.stop, report.rounds, run.state().open_calls.len())
        })
    };
    let threads: Vec<_> = (0..AGENTS).map(|number| agent(number).unwrap()).collect();
    crowd.all_ask.wait();
    let each = resident_bytes().saturating_sub(before) / AGENTS;
    crowd.all_ask.wait();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), (RunStop::Done, u32::try_from(ROUNDS + 1).unwrap(), 0));
    }
    eprintln!("{each} bytes per agent");
    assert!(each < MAX_AGENT_BYTES, "{each} bytes per agent");
}
