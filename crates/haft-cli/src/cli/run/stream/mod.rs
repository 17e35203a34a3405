//! Runs whose messages programs read, and runs that a program drives: the stream of JSON lines that Claude Code has, so that what is
//! built on its SDKs works with Haft.
//!
//! One thread reads what the program sends (`reader`), one answers its requests (`control`), and the turns run on the main thread
//! (`drive`). Questions to the program go through `host_link`; what they are about is in `asker`, `user_questions`, `hooks` and
//! `sdk_servers`.

mod args;
mod asker;
mod control;
mod drive;
mod hooks;
mod host_link;
mod host_parts;
mod ids;
mod inbox;
mod init;
mod messages;
mod observer;
mod partial;
mod reader;
mod result;
mod rewind;
pub(super) mod sdk_servers;
mod session;
mod session_state;
mod user_content;
mod user_questions;
mod writer;

use std::sync::{Arc, Mutex};

use haft_compat::stream::{ControlRequest, InitializeRequest};
use haft_policy::Mode;
use haft_tool::{Cancel, ToolError};

use super::super::exit::CliExit;
use super::super::{CommandResult, housekeeping, screen, terminal};
use super::args::{RunArgs, RunOutputFormat};
use super::earlier::EarlierRun;
use super::prepare::PreparedRun;
use super::{prompt, provider};
pub(in crate::cli) use args::StreamArgs;
use asker::ProgramAsker;
use control::{ControlContext, ModelChooser, NewModel};
use drive::{DrivenRun, TurnInput};
pub(super) use host_parts::RunHostParts;
pub(in crate::cli) use ids::new_uuid;
use init::SessionFacts;
pub(in crate::cli) use messages::CLAUDE_VERSION;
use session::HostSession;
use writer::StreamWriter;

/// What is said where Claude Code would use its classifier.
const AUTO_IS_SCOPED: &str = "permission mode auto: Haft has no classifier; this is its mode scoped, in which calls run without a \
     question that stay in the workspace and can be undone";

/// Runs with `--output-format json` or `stream-json`, or with `--input-format stream-json`.
pub(super) fn run(mut args: RunArgs) -> CommandResult {
    let has_host = args.stream.has_host();
    if has_host {
        // A question at a terminal would be answered by no one.
        terminal::never_ask();
        args.output_format = RunOutputFormat::StreamJson;
    }
    let first_words = if has_host { Some(args.prompt.join(" ")) } else { prompt(&args.prompt)? };
    let first_words = first_words.filter(|words| !words.trim().is_empty());
    let earlier = EarlierRun::find(&args)?;
    let proceeds =
        first_words.is_none() && earlier.as_ref().is_some_and(|earlier| earlier.state.is_turn_open);
    if first_words.is_none() && !has_host && !proceeds {
        return Err(ToolError::invalid_arguments(
            "there is no prompt. Give one: haft -p 'What does this project do?', or - to read it from standard input",
        ));
    }

    let session = HostSession::new(StreamWriter::new(args.output_format, args.verbose), has_host);
    let ended = Cancel::new();
    terminal::cancel_on_signal(&ended, false)?;
    let (ending, shared) = (ended.clone(), Arc::clone(&session));
    session.writer.lost().then(move || ending.cancel());
    ended.then(move || {
        shared.writer.end();
        shared.inbox.end();
    });

    let mut initialize: Option<(String, Box<InitializeRequest>)> = None;
    if has_host {
        reader::start(&session)?;
        if let Some((id, request)) = session.inbox.first_request() {
            match ControlRequest::read(&request) {
                Ok(Some(ControlRequest::Initialize(request))) => initialize = Some((id, request)),
                Err(why) => session.answer(&id, Err(why)),
                _ => session.inbox.return_request((id, request)),
            }
        }
    }
    let first = match first_words {
        Some(words) => Some(TurnInput::Words(words)),
        None if proceeds && !has_host => Some(TurnInput::Proceed),
        None => None,
    };
    let prepared =
        prepare(&mut args, earlier.as_ref(), &session, initialize.as_ref().map(|(_, it)| it.as_ref()));
    let driven = match prepared {
        Ok(driven) => driven,
        Err(error) => {
            if let Some((id, _)) = &initialize {
                session.answer(id, Err(error.message.clone()));
            }
            return Err(error);
        }
    };
    let mut driven = driven;
    if let Some((id, request)) = &initialize {
        let answer = driven.facts.initialized(driven.model(), &request.sdk_mcp_servers);
        session.answer(id, Ok(answer));
    }
    let control = if has_host { Some(control::start(driven.control_context(&args))?) } else { None };
    let exit = driven.run(first, &ended);
    session.inbox.end();
    if let Some(control) = control {
        // It ends with the inbox; a panic there has ended it, too.
        let _ = control.join();
    }
    driven.close();
    housekeeping::run_if_due(driven.prepared.runtime.ledger(), &driven.prepared.setup.config.values.ledger);
    exit
}

/// Prepares the run with what the program has said about it.
fn prepare(
    args: &mut RunArgs,
    earlier: Option<&EarlierRun>,
    session: &Arc<HostSession>,
    initialize: Option<&InitializeRequest>,
) -> Result<DrivenRun, ToolError> {
    if let Some(request) = initialize {
        apply_initialize(args, request);
    }
    let has_host = args.stream.has_host();
    let asker = (has_host && args.stream.asks_host()).then(|| Arc::new(ProgramAsker::new(session)));
    let parts = if has_host {
        let name = new_session_name(args, earlier)?;
        host_parts::of(session, initialize, asker.clone(), name)
    } else {
        RunHostParts { session_name: new_session_name(args, earlier)?, ..RunHostParts::default() }
    };
    let shown_id = match (&parts.session_name, earlier) {
        (Some(name), _) => Some(name.clone()),
        (None, Some(earlier)) => earlier.name().map(str::to_owned),
        (None, None) => None,
    };
    let prepared = PreparedRun::with_host(args, earlier, parts)?;
    if let Some(asker) = asker {
        asker.attach(prepared.runtime.downgrade());
    }
    session.set_id(shown_id.as_deref().unwrap_or_else(|| prepared.run.session()));
    if has_host && prepared.runtime.mode() == Mode::Scoped {
        screen::note(AUTO_IS_SCOPED);
    }
    let facts = SessionFacts {
        runtime: prepared.runtime.clone(),
        servers: prepared.servers.clone(),
        skills: prepared.skills.names().map(str::to_owned).collect(),
        agents: prepared.agent_names.clone(),
        directories: args.at.scope.directories.iter().map(|path| path.display().to_string()).collect(),
        has_tools: prepared.has_tools,
    };
    Ok(DrivenRun::new(session, prepared, facts, args))
}

/// Puts what the program says at the beginning into the flags: both of its forms mean the same.
fn apply_initialize(args: &mut RunArgs, request: &InitializeRequest) {
    if let Some(sections) = &request.system_prompt {
        args.system_prompt = Some(sections.join("\n\n"));
    }
    if let Some(text) = request.append_system_prompt.as_deref().filter(|text| !text.is_empty()) {
        args.append_to_system_prompt(text);
    }
    if let Some(schema) = &request.json_schema {
        args.stream.json_schema.get_or_insert_with(|| schema.to_string());
    }
    if let Some(settings) = &request.managed_settings {
        args.set_managed_settings(settings);
    }
}

/// The name of a new session: programs expect UUIDs. A run that is continued keeps its own.
fn new_session_name(args: &RunArgs, earlier: Option<&EarlierRun>) -> Result<Option<String>, ToolError> {
    if let Some(given) = &args.stream.session_id {
        if !ids::is_uuid(given) {
            let why = format!("--session-id {given}: it is not a UUID, such as {}", new_uuid());
            return Err(ToolError::invalid_arguments(why));
        }
        return Ok(Some(given.to_ascii_lowercase()));
    }
    let is_new = earlier.is_none() || args.fork_session;
    let is_streamed = args.output_format == RunOutputFormat::StreamJson;
    Ok((is_new && is_streamed).then(new_uuid))
}

impl DrivenRun {
    /// What requests of the program need while turns run.
    fn control_context(&self, args: &RunArgs) -> ControlContext {
        let (flags, max_turns) = (args.model.clone(), args.max_turns);
        let section = self.prepared.setup.config.values.model.clone();
        let runtime = self.prepared.runtime.clone();
        let provider = self.prepared.run.state().provider.clone();
        let choose_model: ModelChooser = Box::new(move |name| {
            let mut flags = flags.clone();
            if let Some(name) = name.filter(|name| *name != "default") {
                flags.model = Some(name.to_owned());
            }
            if flags.base_url.is_none() {
                flags.provider.get_or_insert_with(|| provider.clone());
            }
            let chosen = provider::choose(&flags, &section, max_turns, None, &runtime)?;
            Ok(NewModel { model: chosen.model, fast: chosen.fast })
        });
        ControlContext {
            session: Arc::clone(&self.session),
            facts: self.facts.clone(),
            ledger_session: self.prepared.run.session().to_owned(),
            allows_bypass: !self.prepared.setup.claude.no_bypass,
            choose_model,
            next_model: Arc::clone(&self.next_model),
        }
    }
}

/// The model that answers from the next turn on, if another was chosen.
type NextModel = Arc<Mutex<Option<NewModel>>>;

/// The exit code of a run whose last result was an error, or not.
const fn exit_of(is_error: bool) -> CliExit {
    if is_error { CliExit::Failed } else { CliExit::Done }
}
