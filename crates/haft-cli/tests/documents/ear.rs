//! A tool as it is, in a World that hears its commands and requests and answers them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft::{
    AnyTool, Bound, Cancel, Capture, Definition, EffectKind, Exit, Files, Finished, Host, Http, HttpRequest,
    HttpResponse, Perform, Planned, Planning, Processes, Progress, RunRequest, Tasks, ToolError, Value,
    World,
};

/// What was heard, and what is answered.
#[derive(Default)]
pub(crate) struct Ear {
    runs: Mutex<Vec<RunRequest>>,
    requests: Mutex<Vec<HttpRequest>>,
    answers: Mutex<VecDeque<HttpResponse>>,
    refusal: Mutex<Option<&'static str>>,
}

impl Ear {
    /// The command that was asked for last.
    pub(crate) fn run(&self) -> RunRequest {
        self.runs.lock().unwrap().pop().unwrap()
    }

    /// The request that was made last.
    pub(crate) fn request(&self) -> HttpRequest {
        self.requests.lock().unwrap().pop().unwrap()
    }

    /// No command can be started any more.
    pub(crate) fn refuse(&self, why: &'static str) {
        *self.refusal.lock().unwrap() = Some(why);
    }

    /// What the next request gets.
    pub(crate) fn answers(&self, answer: HttpResponse) {
        self.answers.lock().unwrap().push_back(answer);
    }
}

impl Processes for Ear {
    fn run(&self, request: &RunRequest) -> Result<Finished, ToolError> {
        if let Some(why) = *self.refusal.lock().unwrap() {
            return Err(ToolError::failed(why));
        }
        self.runs.lock().unwrap().push(request.clone());
        Ok(Finished {
            exit: Exit::Code(0),
            stdout: Capture::default(),
            stderr: Capture::default(),
            elapsed: Duration::ZERO,
            left_behind: 0,
            denials: Vec::new(),
            exhausted: None,
        })
    }
}

impl Http for Ear {
    fn fetch(&self, request: &HttpRequest) -> Result<HttpResponse, ToolError> {
        self.requests.lock().unwrap().push(request.clone());
        let answer = self.answers.lock().unwrap().pop_front();
        answer
            .map(|answer| HttpResponse { url: request.url.clone(), ..answer })
            .ok_or_else(|| ToolError::failed("no answer is set"))
    }
}

/// The tool, heard by `ear`.
pub(crate) fn to(tool: Arc<dyn AnyTool>, ear: &Arc<Ear>) -> Arc<dyn AnyTool> {
    Arc::new(Heard { tool, ear: Arc::clone(ear) })
}

struct Heard {
    tool: Arc<dyn AnyTool>,
    ear: Arc<Ear>,
}

impl AnyTool for Heard {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn effects(&self) -> &[EffectKind] {
        self.tool.effects()
    }

    fn definition(&self) -> Definition {
        self.tool.definition()
    }

    fn bound(&self) -> Bound {
        self.tool.bound()
    }

    fn clamp_numbers(&self) -> bool {
        self.tool.clamp_numbers()
    }

    fn output_schema(&self) -> Option<fn() -> Value> {
        self.tool.output_schema()
    }

    fn plan(self: Arc<Self>, arguments: Value, at: &Planning) -> Result<Planned<Perform>, ToolError> {
        let planned = Arc::clone(&self.tool).plan(arguments, at)?;
        Ok(planned.map(|perform| -> Perform {
            Box::new(move |world| perform(&HeardWorld { world, ear: &self.ear }))
        }))
    }
}

struct HeardWorld<'a> {
    world: &'a dyn World,
    ear: &'a Ear,
}

impl World for HeardWorld<'_> {
    fn planning(&self) -> &Planning {
        self.world.planning()
    }

    fn files(&self) -> &dyn Files {
        self.world.files()
    }

    fn processes(&self) -> &dyn Processes {
        self.ear
    }

    fn tasks(&self) -> &dyn Tasks {
        self.world.tasks()
    }

    fn http(&self) -> &dyn Http {
        self.ear
    }

    fn host(&self) -> &dyn Host {
        self.world.host()
    }

    fn note(&self, name: &str) -> Result<Option<Value>, ToolError> {
        self.world.note(name)
    }

    fn set_note(&self, name: &str, value: Value) {
        self.world.set_note(name, value);
    }

    fn progress(&self, progress: Progress) {
        self.world.progress(progress);
    }

    fn cancelled(&self) -> &Cancel {
        self.world.cancelled()
    }
}
