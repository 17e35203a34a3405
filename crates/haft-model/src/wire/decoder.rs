//! The bytes of a response, divided into JSON values.

use haft_tool::sse::SseParser;
use haft_tool::{InputLine, LineSplitter, Value};

use super::failure::WireError;
use crate::{ModelEvent, ModelResponse};

/// The longest event or line.
const MAX_EVENT_BYTES: usize = 16 << 20;
/// The longest response.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// What one wire format makes of the JSON values of a response.
pub(super) trait Accumulator: Send {
    /// Takes one event of a stream.
    fn event(&mut self, event: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError>;
    /// Takes a response that was not streamed.
    fn whole(&mut self, body: Value, out: &mut Vec<ModelEvent>) -> Result<(), WireError>;
    /// Whether the terminal event has arrived.
    fn is_complete(&self) -> bool;
    /// Whether nothing of interest follows the terminal event.
    fn is_ended(&self) -> bool {
        self.is_complete()
    }
    /// The response: all of it when it is complete, else what is usable without the rest.
    fn response(&mut self) -> ModelResponse;
}

enum Framing {
    Events(SseParser),
    Lines(LineSplitter),
}

/// Decodes one response, in pieces or whole.
pub struct ResponseDecoder {
    framing: Framing,
    accumulator: Box<dyn Accumulator>,
    received_bytes: usize,
    event_count: u64,
    /// Whether the server said that nothing more comes.
    has_ended: bool,
}

impl ResponseDecoder {
    pub(super) fn events(accumulator: Box<dyn Accumulator>) -> Self {
        Self::new(Framing::Events(SseParser::new(MAX_EVENT_BYTES)), accumulator)
    }

    pub(super) fn lines(accumulator: Box<dyn Accumulator>) -> Self {
        Self::new(Framing::Lines(LineSplitter::new(MAX_EVENT_BYTES)), accumulator)
    }

    fn new(framing: Framing, accumulator: Box<dyn Accumulator>) -> Self {
        Self { framing, accumulator, received_bytes: 0, event_count: 0, has_ended: false }
    }

    /// Takes the next bytes of a stream and adds what they report to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        self.received_bytes = self.received_bytes.saturating_add(bytes.len());
        if self.received_bytes > MAX_RESPONSE_BYTES {
            return Err(too_long());
        }
        match &mut self.framing {
            Framing::Events(parser) => parser.push(bytes),
            Framing::Lines(lines) => lines.push(bytes),
        }
        self.take_events(out)
    }

    fn take_events(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        loop {
            let data = match &mut self.framing {
                Framing::Events(parser) => match parser.take().map_err(|_| too_long())? {
                    Some(event) => event.data.into_bytes(),
                    None => return Ok(()),
                },
                Framing::Lines(lines) => match lines.take() {
                    Some(InputLine::Whole(line)) => line,
                    Some(InputLine::TooLong) => return Err(too_long()),
                    None => return Ok(()),
                },
            };
            self.event_count += 1;
            self.take_data(&data, out)?;
        }
    }

    /// How many events have arrived. Comments, which servers send while they work, are none.
    pub(crate) fn event_count(&self) -> u64 {
        self.event_count
    }

    fn take_data(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        match data.trim_ascii() {
            b"" => Ok(()),
            b"[DONE]" => {
                self.has_ended = true;
                Ok(())
            }
            data => {
                let event = parse(data)?;
                if event.is_object() { self.accumulator.event(event, out) } else { Ok(()) }
            }
        }
    }

    /// Takes the whole body of a response that was not streamed.
    pub fn whole(&mut self, body: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), WireError> {
        if let Framing::Lines(_) = self.framing {
            // One line or several.
            self.push(body, out)?;
            return self.push(b"\n", out);
        }
        if body.len() > MAX_RESPONSE_BYTES {
            return Err(too_long());
        }
        self.accumulator.whole(parse(body)?, out)
    }

    /// Whether the response has said that nothing more comes, so that the connection need not be read further.
    pub fn has_ended(&self) -> bool {
        self.has_ended || self.accumulator.is_ended()
    }

    /// After the last byte: the response. It is an error if its terminal event is missing.
    pub fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<ModelResponse, WireError> {
        if !self.accumulator.is_complete() {
            // The last event may lack its line end.
            self.push(b"\n\n", out)?;
        }
        if self.accumulator.is_complete() {
            return Ok(self.accumulator.response());
        }
        Err(WireError::protocol("The response ended before it was complete"))
    }

    /// What has arrived so far: complete parts and text, without unfinished calls.
    pub fn partial(&mut self) -> ModelResponse {
        self.accumulator.response()
    }
}

fn parse(data: &[u8]) -> Result<Value, WireError> {
    serde_json::from_slice(data).map_err(|error| {
        let start = String::from_utf8_lossy(&data[..data.len().min(80)]).into_owned();
        WireError::protocol(format!("The response contains what is no JSON ({error}): {start:?}"))
    })
}

fn too_long() -> WireError {
    WireError::protocol(format!("The response is longer than {} MiB", MAX_RESPONSE_BYTES >> 20))
}
