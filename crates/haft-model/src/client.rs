//! A model that is reached over HTTP.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use haft_tool::{
    AttemptVerdict, Cancel, ErrorKind, HttpStream, HttpStreams, Pause, RETRY_STATUSES, RetryPolicy,
    StreamRequest, ToolError, Value, retry_after_of,
};

use crate::advice::advice;
use crate::temperature::{self, RefusedTemperatures};
use crate::wire::{OLD_ANTHROPIC_VERSION, ResponseDecoder, WireError};
use crate::{
    Endpoint, Model, ModelAddress, ModelError, ModelErrorKind, ModelEvent, ModelResponse, OutputSchema,
    TurnOptions, TurnRequest, Wire,
};

/// The longest body that is read.
const MAX_BODY_BYTES: usize = 64 << 20;
/// The longest body of an error that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// How long the end of a response that is complete is waited for, so that its connection can be used again.
const END_TIMEOUT: Duration = Duration::from_millis(200);

/// How long the explanation of an error is waited for.
const EXPLANATION_TIMEOUT: Duration = Duration::from_secs(10);
const BROKEN: &str = "Only a part of the answer came from";

/// How often and when a request to a model is made again.
pub const MODEL_RETRY: RetryPolicy = RetryPolicy {
    attempts: 5,
    statuses: RETRY_STATUSES,
    base: Duration::from_millis(500),
    cap: Duration::from_secs(30),
    longest: Duration::from_mins(2),
};

/// How long a provider may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTimeouts {
    /// While an answer is streamed, its begin included.
    pub stream: Duration,
    /// While an answer is made that is sent as a whole.
    pub whole: Duration,
    /// While nothing but comments arrives, by which a server says that it still works.
    pub comments: Duration,
}

impl Default for ModelTimeouts {
    fn default() -> Self {
        Self {
            stream: Duration::from_mins(5),
            whole: Duration::from_mins(10),
            comments: Duration::from_mins(15),
        }
    }
}

/// A model that is reached over HTTP.
pub struct HttpModel {
    endpoint: Endpoint,
    model: String,
    http: Arc<dyn HttpStreams>,
    retry: RetryPolicy,
    timeouts: ModelTimeouts,
    /// Whether the server does not know the current version of Anthropic's protocol.
    uses_old_version: AtomicBool,
    refused_temperatures: RefusedTemperatures,
}

/// What one request reports to.
struct Reporter<'a> {
    on_event: RefCell<&'a mut dyn FnMut(ModelEvent)>,
    /// Whether a part of the message was reported.
    has_shown: Cell<bool>,
}

impl Reporter<'_> {
    fn report(&self, event: ModelEvent) {
        use ModelEvent::{CallBegun, CallComplete, Reasoning, Text};
        if matches!(event, Text { .. } | Reasoning { .. } | CallBegun { .. } | CallComplete(_)) {
            self.has_shown.set(true);
        }
        (self.on_event.borrow_mut())(event);
    }

    fn report_all(&self, events: &mut Vec<ModelEvent>) {
        events.drain(..).for_each(|event| self.report(event));
    }
}

impl HttpModel {
    /// A model at this endpoint.
    pub fn new(endpoint: Endpoint, model: impl Into<String>, http: Arc<dyn HttpStreams>) -> Self {
        Self {
            endpoint,
            model: model.into(),
            http,
            retry: MODEL_RETRY,
            timeouts: ModelTimeouts::default(),
            uses_old_version: AtomicBool::new(false),
            refused_temperatures: RefusedTemperatures::default(),
        }
    }

    /// The same model with another policy for retries.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// The same model with other time limits.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: ModelTimeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The model that a request asks.
    fn asked<'a>(&'a self, request: &TurnRequest<'a>) -> &'a str {
        request.options.model.as_deref().unwrap_or(&self.model)
    }

    /// The temperature of a request, if it is known that the model does not accept it.
    fn refused_temperature(&self, request: &TurnRequest<'_>) -> Option<f64> {
        let is_refused = |temperature: &f64| {
            !self.endpoint.codec().accepts_temperature()
                || self.refused_temperatures.contains(self.asked(request), *temperature)
        };
        request.options.temperature.filter(is_refused)
    }

    /// Makes the request once; and again without its temperature, if the server says that the model does not accept it.
    fn attempt(
        &self,
        request: &TurnRequest<'_>,
        reporter: &Reporter<'_>,
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        let Some(temperature) = request.options.temperature else {
            return self.attempt_as_it_is(request, reporter, cancel);
        };
        let options = TurnOptions { temperature: None, ..request.options.clone() };
        let without = TurnRequest { options: &options, ..*request };
        if self.refused_temperature(request).is_some() {
            return self.attempt_as_it_is(&without, reporter, cancel);
        }
        match self.attempt_as_it_is(request, reporter, cancel) {
            Err(error) if temperature::is_refused(&error) => {
                let model = self.asked(request);
                self.refused_temperatures.add(model, temperature);
                reporter.report(temperature::notice(self.endpoint.provider.title, model, temperature));
                self.attempt_as_it_is(&without, reporter, cancel)
            }
            result => result,
        }
    }

    /// Makes the request once; and again with an older version of the protocol, if the server says that it wants one.
    fn attempt_as_it_is(
        &self,
        request: &TurnRequest<'_>,
        reporter: &Reporter<'_>,
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        if reporter.has_shown.replace(false) {
            reporter.report(ModelEvent::Restarted);
        }
        let uses_old = self.uses_old_version.load(Ordering::Relaxed);
        match self.send(request, uses_old, reporter, cancel) {
            Err(error) if !uses_old && self.wants_old_version(&error) => {
                let text = format!(
                    "{} does not accept anthropic-version {}; {OLD_ANTHROPIC_VERSION} is used.",
                    self.endpoint.display_url(),
                    self.endpoint.options.anthropic_version
                );
                reporter.report(ModelEvent::Notice { text });
                self.uses_old_version.store(true, Ordering::Relaxed);
                self.send(request, true, reporter, cancel)
            }
            result => result,
        }
    }

    /// Whether an error says that the server does not know the version of the protocol, which is Haft's choice.
    fn wants_old_version(&self, error: &ModelError) -> bool {
        self.endpoint.wire == Wire::Anthropic
            && self.endpoint.may_change_version
            && self.endpoint.options.anthropic_version != OLD_ANTHROPIC_VERSION
            && error.status == Some(400)
            && error.message.contains("anthropic-version")
    }

    fn send(
        &self,
        request: &TurnRequest<'_>,
        uses_old_version: bool,
        reporter: &Reporter<'_>,
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        let mut endpoint = self.endpoint.clone();
        if uses_old_version {
            OLD_ANTHROPIC_VERSION.clone_into(&mut endpoint.options.anthropic_version);
        }
        let model = self.asked(request);
        let (codec, stream) = (endpoint.codec(), request.options.stream);
        let body = codec.encode(request, model).to_string().into_bytes();
        let sent = StreamRequest {
            method: "POST",
            url: endpoint.url(model, stream),
            headers: endpoint.headers(stream),
            body: Some(body),
        };
        let silence = if stream { self.timeouts.stream } else { self.timeouts.whole };
        let response = self.http.open(sent, silence, cancel);
        let mut response = response.map_err(|error| self.network_error("No answer from", &error, cancel))?;
        if !(200..300).contains(&response.status) {
            return Err(self.status_error(response, model, cancel));
        }
        let mut decoder = codec.decoder(request, model);
        let is_stream = match response.header("content-type").unwrap_or_default() {
            kind if kind.contains("event-stream") || kind.contains("ndjson") => true,
            kind if kind.contains("json") => false,
            _ => stream,
        };
        let result = if is_stream {
            self.read_stream(&mut response, &mut decoder, reporter, cancel)
        } else {
            self.read_whole(&mut response, &mut decoder, reporter, cancel)
        };
        result.map_err(|mut error| {
            error.request_id = request_id(&response);
            if reporter.has_shown.get() {
                error.partial = Some(Box::new(decoder.partial()));
            }
            error
        })
    }

    fn read_stream(
        &self,
        response: &mut HttpStream,
        decoder: &mut ResponseDecoder,
        reporter: &Reporter<'_>,
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        let mut events = Vec::new();
        let (mut event_count, mut last_event) = (0, Instant::now());
        while !decoder.has_ended() {
            match response.body.next(self.timeouts.stream, cancel) {
                Ok(Some(bytes)) => {
                    let pushed = decoder.push(&bytes, &mut events);
                    reporter.report_all(&mut events);
                    pushed.map_err(|error| self.wire_error(error, None))?;
                    if cancel.is_cancelled() {
                        return Err(self.cancelled());
                    }
                    if decoder.event_count() > event_count {
                        (event_count, last_event) = (decoder.event_count(), Instant::now());
                    } else if last_event.elapsed() >= self.timeouts.comments {
                        let limit = self.timeouts.comments.as_secs();
                        let error = ToolError::new(
                            ErrorKind::Timeout,
                            format!("only comments arrived for {limit} s"),
                        );
                        return Err(self.network_error(BROKEN, &error, cancel));
                    }
                }
                Ok(None) => break,
                // Only what follows the message is lost.
                Err(error) if !cancel.is_cancelled() => match decoder.finish(&mut events) {
                    Ok(complete) => return Ok(complete),
                    Err(_) => return Err(self.network_error(BROKEN, &error, cancel)),
                },
                Err(error) => return Err(self.network_error(BROKEN, &error, cancel)),
            }
        }
        if decoder.has_ended() {
            let _ = response.body.next(END_TIMEOUT, cancel);
        }
        let finished = decoder.finish(&mut events);
        reporter.report_all(&mut events);
        finished.map_err(|error| self.wire_error(error, None))
    }

    fn read_whole(
        &self,
        response: &mut HttpStream,
        decoder: &mut ResponseDecoder,
        reporter: &Reporter<'_>,
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        let body = read_body(response, MAX_BODY_BYTES, self.timeouts.whole, cancel)
            .map_err(|error| self.network_error(BROKEN, &error, cancel))?;
        let mut events = Vec::new();
        let taken = decoder.whole(&body, &mut events);
        let finished = taken.and_then(|()| decoder.finish(&mut events));
        reporter.report_all(&mut events);
        finished.map_err(|error| self.wire_error(error, None))
    }

    /// The error for a response whose status is no success.
    fn status_error(&self, mut response: HttpStream, model: &str, cancel: &Cancel) -> ModelError {
        // A body that does not arrive does not change what the status says.
        let body = read_body(&mut response, MAX_ERROR_BYTES, EXPLANATION_TIMEOUT, cancel).unwrap_or_default();
        if cancel.is_cancelled() {
            return self.cancelled();
        }
        let value = serde_json::from_slice(&body).unwrap_or_else(|_| {
            let words: Vec<String> =
                String::from_utf8_lossy(&body).split_whitespace().map(str::to_owned).collect();
            Value::String(words.join(" "))
        });
        let status = response.status;
        // Gemini's list form wraps even errors.
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(&value);
        let mut failure = WireError::read(Some(status), value);
        failure.retry_after = retry_after_of(|name| response.header(name)).or(failure.retry_after);
        let said = std::mem::take(&mut failure.message);
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        failure.message = format!("HTTP {status} from {}{said}", self.endpoint.provider.title);
        if failure.kind == ModelErrorKind::UnknownModel {
            failure.message = format!("{} (model {model:?})", failure.message);
        }
        let mut error = self.wire_error(failure, Some(status));
        error.request_id = request_id(&response);
        error
    }

    fn wire_error(&self, failure: WireError, status: Option<u16>) -> ModelError {
        let WireError { kind, message, retry_after } = failure;
        let message = match (status, message.as_str()) {
            (Some(_), _) => message,
            (None, "") => {
                format!("{} reported an error without an explanation", self.endpoint.provider.title)
            }
            (None, _) => format!("{}: {message}", self.endpoint.provider.title),
        };
        let mut error = ModelError::new(kind, &self.endpoint.identity, message);
        (error.status, error.retry_after) = (status, retry_after);
        error.advice = advice(&error, &self.endpoint, self.retry.longest);
        error.covering(self.endpoint.key.as_ref())
    }

    /// The error of a connection; `what` says what is missing from the provider.
    fn network_error(&self, what: &str, cause: &ToolError, cancel: &Cancel) -> ModelError {
        if cancel.is_cancelled() {
            return self.cancelled();
        }
        let kind = match cause.kind {
            ErrorKind::Io | ErrorKind::Interrupted => ModelErrorKind::Network,
            ErrorKind::Timeout => ModelErrorKind::Timeout,
            // The address is not allowed or not valid, or there is no secure connection to it.
            _ => ModelErrorKind::Settings,
        };
        let title = self.endpoint.provider.title;
        let url = self.endpoint.display_url();
        let message = format!("{what} {title} at {url}: {}", cause.message);
        let mut error = ModelError::new(kind, &self.endpoint.identity, message);
        error.advice = advice(&error, &self.endpoint, self.retry.longest);
        error.covering(self.endpoint.key.as_ref())
    }

    fn cancelled(&self) -> ModelError {
        ModelError::new(ModelErrorKind::Cancelled, &self.endpoint.identity, "The request was cancelled")
    }
}

impl Model for HttpModel {
    fn provider(&self) -> &str {
        self.endpoint.provider.name
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn address(&self) -> Option<ModelAddress> {
        Some(self.endpoint.address())
    }

    fn holds_schema(&self, schema: &OutputSchema) -> bool {
        self.endpoint.holds_schema(schema)
    }

    fn respond(
        &self,
        request: &TurnRequest<'_>,
        on_event: &mut dyn FnMut(ModelEvent),
        cancel: &Cancel,
    ) -> Result<ModelResponse, ModelError> {
        let start = Instant::now();
        let reporter = Reporter { on_event: RefCell::new(on_event), has_shown: Cell::new(false) };
        if let Some(temperature) = self.refused_temperature(request) {
            let model = self.asked(request);
            reporter.report(temperature::notice(self.endpoint.provider.title, model, temperature));
        }
        let verdict = |outcome: &Result<ModelResponse, ModelError>| match outcome {
            Err(error) if error.is_retryable() => {
                // A server that is not there is reported soon: waits that grow are for those that are busy.
                let short = (error.kind == ModelErrorKind::Network).then_some(self.retry.base);
                AttemptVerdict::Retry { why: error.message.clone(), wait: error.retry_after.or(short) }
            }
            _ => AttemptVerdict::Final,
        };
        let pause = |pause: &Pause| {
            reporter.report(ModelEvent::Retrying(pause.clone()));
            if cancel.wait(pause.wait) { Err(self.cancelled()) } else { Ok(()) }
        };
        let mut response = self.retry.run(|| self.attempt(request, &reporter, cancel), verdict, pause)?;
        response.elapsed = start.elapsed();
        Ok(response)
    }
}

/// Reads a body up to a limit.
fn read_body(
    response: &mut HttpStream,
    max_bytes: usize,
    limit: Duration,
    cancel: &Cancel,
) -> Result<Vec<u8>, ToolError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.body.next(limit, cancel)? {
        body.extend_from_slice(&bytes);
        if body.len() > max_bytes {
            body.truncate(max_bytes);
            break;
        }
    }
    Ok(body)
}

/// The provider's name for a request.
fn request_id(response: &HttpStream) -> Option<Box<str>> {
    ["request-id", "x-request-id", "x-generation-id"]
        .iter()
        .find_map(|name| response.header(name).map(Box::from))
}
