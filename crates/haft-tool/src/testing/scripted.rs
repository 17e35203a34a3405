//! Processes and HTTP with scripted results.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use crate::{
    Capture, Exit, Finished, Http, HttpRequest, HttpResponse, Processes, RunRequest, TaskClass, TaskInfo,
    TaskRead, Tasks, ToolError, lock,
};

/// Processes whose results are scripted.
#[derive(Debug, Default)]
pub struct ScriptedProcesses {
    results: Mutex<VecDeque<Finished>>,
    requests: Mutex<Vec<RunRequest>>,
}

impl ScriptedProcesses {
    /// Adds the result of the next command.
    pub fn push(&self, result: Finished) {
        lock(&self.results).push_back(result);
    }

    /// Adds the result of the next command: an exit code and what it wrote to standard output.
    pub fn push_output(&self, code: i32, stdout: impl Into<Vec<u8>>) {
        let head = stdout.into();
        let stdout = Capture { total: head.len() as u64, head, tail: Vec::new() };
        self.push(Finished {
            exit: Exit::Code(code),
            stdout,
            stderr: Capture::default(),
            elapsed: Duration::ZERO,
            left_behind: 0,
            denials: Vec::new(),
            exhausted: None,
            runs_on_build: Vec::new(),
            previewed: None,
        });
    }

    /// The commands that were run.
    pub fn requests(&self) -> Vec<RunRequest> {
        lock(&self.requests).clone()
    }
}

impl Processes for ScriptedProcesses {
    fn run(&self, request: &RunRequest) -> Result<Finished, ToolError> {
        lock(&self.requests).push(request.clone());
        lock(&self.results)
            .pop_front()
            .ok_or_else(|| ToolError::failed(format!("no result is scripted for {:?}", request.argv)))
    }
}

/// HTTP whose responses are scripted.
#[derive(Debug, Default)]
pub struct ScriptedHttp {
    responses: Mutex<VecDeque<Result<HttpResponse, ToolError>>>,
    requests: Mutex<Vec<HttpRequest>>,
}

impl ScriptedHttp {
    /// Adds the response to the next request. Its `url` is replaced by that of the request.
    pub fn push(&self, response: HttpResponse) {
        lock(&self.responses).push_back(Ok(response));
    }

    /// Adds an error instead of a response, such as a timeout.
    pub fn push_error(&self, error: ToolError) {
        lock(&self.responses).push_back(Err(error));
    }

    /// Adds a response with a body.
    pub fn push_body(&self, status: u16, content_type: &str, body: impl Into<Vec<u8>>) {
        let body = body.into();
        self.push(HttpResponse {
            status,
            status_text: String::new(),
            url: String::new(),
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            total_bytes: body.len() as u64,
            body,
            more: false,
            redirect: None,
        });
    }

    /// The requests that were sent.
    pub fn requests(&self) -> Vec<HttpRequest> {
        lock(&self.requests).clone()
    }
}

impl Http for ScriptedHttp {
    fn fetch(&self, request: &HttpRequest) -> Result<HttpResponse, ToolError> {
        lock(&self.requests).push(request.clone());
        let response = lock(&self.responses).pop_front();
        let response = response
            .ok_or_else(|| ToolError::failed(format!("no response is scripted for {}", request.url)))??;
        Ok(HttpResponse { url: request.url.clone(), ..response })
    }
}

/// A World without background tasks.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTasks;

impl NoTasks {
    fn refuse<T>() -> Result<T, ToolError> {
        Err(ToolError::denied("this World has no background tasks"))
    }
}

impl Tasks for NoTasks {
    fn start(
        &self,
        _request: &RunRequest,
        _description: &str,
        _class: TaskClass,
    ) -> Result<TaskInfo, ToolError> {
        Self::refuse()
    }

    fn read(&self, _id: &str, _wait: Option<Duration>, _most: usize) -> Result<TaskRead, ToolError> {
        Self::refuse()
    }

    fn stop(&self, _id: &str) -> Result<TaskInfo, ToolError> {
        Self::refuse()
    }

    fn list(&self) -> Vec<TaskInfo> {
        Vec::new()
    }
}
