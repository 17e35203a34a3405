#![doc = include_str!("../README.md")]
//!
//! `events` and `fold` say what a run is, `turn` drives it, `make_calls`, `calls` and `schedule` make the calls of an answer, `settle` finds out
//! what became of calls whose process died, `compaction` keeps the conversation within the model's context,
//! `run_hooks` runs the user's hooks.
//!
//! Never here: wire formats (haft-model), decisions about a call (haft-policy), text for a screen, an async runtime.

mod agent_kinds;
mod agents;
mod allowed;
mod answer_schema;
mod ask;
mod call_results;
mod calls;
mod compaction;
mod context;
mod events;
mod fold;
mod fork;
mod front_matter;
mod instructions;
mod live_answer;
mod make_calls;
mod observer;
mod prompt;
mod reports;
mod rewind;
mod run;
mod run_hooks;
mod run_log;
pub mod schedule;
mod settings;
mod settle;
mod skills;
mod turn;
mod turn_clock;

pub use agent_kinds::{AgentKind, AgentKinds};
pub use agents::{AgentFacts, AgentHost, AgentLimits, AgentOrigin, agent_entry_point, parent_of_agent};
pub use allowed::AllowedTools;
pub use answer_schema::AnswerSchema;
pub use context::context_window;
pub use events::{AnswerArrival, ElidedCall, RUN_LOG_VERSION, RunEvent, RunStart, RunStop, TurnTrace};
pub use fold::{OpenCall, RunState, RunTotals, TurnMark};
pub use front_matter::{FrontMatter, front_matter};
pub use instructions::{ProjectInstructions, project_instructions, user_instructions};
pub use observer::{LoopEvent, NoObserver, RunObserver};
pub use prompt::{PromptFacts, agent_prompt, system_prompt};
pub use reports::{RunReports, TodoEntry, TurnBudget};
pub use rewind::{calls_since, rewind_run};
pub use run::{AgentRun, RunParts};
pub use run_log::{LoggedEvent, read_run, read_run_events};
pub use settings::{RunLimits, RunSettings, default_rounds};
pub use skills::{RunSkills, SKILL_FOLDERS};
pub use turn::TurnReport;
