//! Exports a session as one HTML file: the page with recorded answers of the API, so that it needs no server and no network.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use haft_tool::{Value, json};
use hyper::header::CONTENT_DISPOSITION;
use hyper::{Method, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::access::Role;
use crate::api::error::ApiError;
use crate::api::query::Query;
use crate::api::{self, Api, ApiRequest, RouteMatch};
use crate::assets;
use crate::reply::{HttpReply, ReplyContent};

/// Bytes of recorded answers in an export. What does not fit is left out, and the page says so.
const MAX_BYTES: usize = 64 << 20;
/// File differences in an export.
const MAX_DIFFS: usize = 5_000;
/// Parts of one list in an export.
const MAX_PARTS: usize = 20;
/// Calls of a session that are exported.
const MAX_CALLS: usize = 20_000;
/// Calls per read.
const READ_CALL_COUNT: usize = 500;
/// The part sizes that the page requests; they are part of the keys of the recorded answers.
const MESSAGES_PART_COUNT: usize = 200;
const CHANGES_PART_COUNT: usize = 1_000;
/// The prefix by which scripts import each other.
const MODULES: &str = "haft/";
/// The script that starts the page.
const START: &str = "import 'haft/main.js';";

/// The exported session.
pub(crate) fn reply(api: &Api, session: &str) -> Result<HttpReply, ApiError> {
    let mut recorder = Recorder { api, answers: BTreeMap::new(), bytes: 0, diffs: 0, is_cut: false };
    recorder.record("/meta");
    let id = encoded(session);
    // Without the session itself there is nothing to export.
    if let Some(detail) = recorder.try_record(&format!("/sessions/{id}"))? {
        recorder.session(&id, &detail);
    }
    let data = ExportData { session, is_cut: recorder.is_cut, responses: recorder.answers };
    let data = serde_json::to_string(&data).map_err(haft_tool::ToolError::from)?;
    let html = page(&data);
    let name: String = session.chars().filter(char::is_ascii_alphanumeric).collect();
    let reply = HttpReply::bytes(StatusCode::OK, "text/html; charset=utf-8", html);
    Ok(reply.with(CONTENT_DISPOSITION, &format!("attachment; filename=\"haft-{name}.html\"")))
}

/// The data in the file for the page.
#[derive(Serialize)]
struct ExportData<'a> {
    session: &'a str,
    /// Whether something did not fit.
    is_cut: bool,
    responses: BTreeMap<String, Box<RawValue>>,
}

/// Records answers by the path and query with which the page requests them. An answer that fails is left out, and the page says so.
struct Recorder<'a> {
    api: &'a Api,
    answers: BTreeMap<String, Box<RawValue>>,
    bytes: usize,
    diffs: usize,
    /// Whether something did not fit.
    is_cut: bool,
}

impl Recorder<'_> {
    /// Records a session, then its subagents.
    fn session(&mut self, id: &str, detail: &Value) {
        self.session_parts(id);
        let agents = detail.get("agents").and_then(Value::as_array);
        for agent in agents.into_iter().flatten() {
            let Some(id) = agent.pointer("/session/id").and_then(Value::as_str).map(encoded) else {
                continue;
            };
            if let Some(detail) = self.record(&format!("/sessions/{id}")) {
                self.session(&id, &detail);
            }
        }
    }

    fn session_parts(&mut self, id: &str) {
        let calls = self.calls(id);
        self.parts(&format!("/sessions/{id}/messages?"), "after", MESSAGES_PART_COUNT, |part| {
            part.get("more").and_then(Value::as_bool)?.then(|| part.get("next")?.as_u64())?
        });
        let net = self.parts(&format!("/files?session={id}&"), "offset", CHANGES_PART_COUNT, next_change);
        for part in &net {
            let workspace = part.get("workspace").and_then(Value::as_str).unwrap_or_default();
            self.diffs(part.get("changes"), workspace);
        }
        for call in &calls {
            let number = call.get("id").and_then(Value::as_i64).unwrap_or_default();
            let Some(detail) = self.record(&format!("/calls/{number}")) else { continue };
            let workspace = call.get("workspace").and_then(Value::as_str).unwrap_or_default();
            self.diffs(detail.get("changes"), workspace);
            if detail.pointer("/changes/next").is_some_and(Value::is_u64) {
                let path = format!("/calls/{number}/changes?");
                for part in self.parts(&path, "offset", CHANGES_PART_COUNT, next_number) {
                    self.diffs(Some(&part), workspace);
                }
            }
        }
    }

    /// Records all calls as one list.
    fn calls(&mut self, id: &str) -> Vec<Value> {
        let (mut calls, mut before): (Vec<Value>, Option<i64>) = (Vec::new(), None);
        loop {
            let before_part = before.map(|before| format!("&before={before}")).unwrap_or_default();
            let path = format!("/sessions/{id}/calls?limit={READ_CALL_COUNT}{before_part}");
            let Ok((mut part, _)) = self.answer(&path) else { break };
            if let Some(Value::Array(more)) = part.get_mut("calls") {
                calls.append(more);
            }
            before = part.get("next").and_then(Value::as_i64);
            if before.is_none() || calls.len() >= MAX_CALLS {
                self.is_cut |= before.is_some();
                break;
            }
        }
        let all = json!({ "calls": calls, "next": null }).to_string();
        self.keep(&format!("/sessions/{id}/calls"), all.into_bytes());
        calls
    }

    /// Records all parts of a list; `next` returns where the next one begins.
    fn parts(
        &mut self,
        path: &str,
        parameter: &str,
        limit: usize,
        next: impl Fn(&Value) -> Option<u64>,
    ) -> Vec<Value> {
        let (mut parts, mut begin) = (Vec::new(), None);
        loop {
            let begin_part = begin.map(|begin| format!("{parameter}={begin}&")).unwrap_or_default();
            let Some(part) = self.record(&format!("{path}{begin_part}limit={limit}")) else { break };
            begin = next(&part);
            parts.push(part);
            if begin.is_none() || parts.len() >= MAX_PARTS {
                self.is_cut |= begin.is_some();
                break;
            }
        }
        parts
    }

    /// Records the differences of changed files.
    fn diffs(&mut self, list: Option<&Value>, workspace: &str) {
        let changes = list.and_then(|list| list.get("changes")).and_then(Value::as_array);
        for change in changes.into_iter().flatten() {
            let text = |pointer: &str| change.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (before, after) = (text("/before/hash"), text("/after/hash"));
            if self.diffs >= MAX_DIFFS {
                self.is_cut = true;
                return;
            }
            // The content of a file without a hash is not known.
            let is_unknown = |kind: &str, hash: &str| text(kind) == "file" && hash.is_empty();
            if is_unknown("/before/kind", before) || is_unknown("/after/kind", after) {
                continue;
            }
            if before.is_empty() && after.is_empty() {
                continue;
            }
            let moved_to = text("/moved_to");
            let path = if moved_to.is_empty() { text("/path") } else { moved_to };
            let mut query = String::new();
            for (name, value) in
                [("path", path), ("before", before), ("after", after), ("workspace", workspace)]
            {
                if !value.is_empty() {
                    let _ = write!(
                        query,
                        "{}{name}={}",
                        if query.is_empty() { "?" } else { "&" },
                        encoded(value)
                    );
                }
            }
            self.diffs += 1;
            let diff = self.record(&format!("/diff{query}"));
            if diff.is_some_and(|diff| diff.get("kind").and_then(Value::as_str) == Some("image")) {
                for hash in [before, after].into_iter().filter(|hash| !hash.is_empty()) {
                    self.image(hash, &query);
                }
            }
        }
    }

    /// Records an image, unless it is gone or too large.
    fn image(&mut self, hash: &str, query: &str) {
        let path = format!("/blobs/{hash}");
        if let Ok((content_type, bytes)) = request(self.api, &format!("{path}{query}")) {
            let image = json!({ "type": content_type, "base64": BASE64.encode(bytes) });
            self.keep(&path, image.to_string().into_bytes());
        }
    }

    /// Records the answer to a request. `None` if it was recorded before, does not fit, or is an error.
    fn record(&mut self, path: &str) -> Option<Value> {
        self.try_record(path).unwrap_or_else(|error| {
            tracing::warn!(path, error = error.message(), "an answer is left out of an export");
            None
        })
    }

    fn try_record(&mut self, path: &str) -> Result<Option<Value>, ApiError> {
        if self.answers.contains_key(&key(path)) {
            return Ok(None);
        }
        let (value, answer) = self.answer(path)?;
        Ok(self.keep(path, answer).then_some(value))
    }

    /// The answer to a request, parsed and as JSON text.
    fn answer(&self, path: &str) -> Result<(Value, Vec<u8>), ApiError> {
        let (_, answer) = request(self.api, path)?;
        let value = serde_json::from_slice(&answer).map_err(haft_tool::ToolError::from)?;
        Ok((value, answer))
    }

    fn keep(&mut self, path: &str, answer: Vec<u8>) -> bool {
        let raw = String::from_utf8(answer).ok().and_then(|json| RawValue::from_string(json).ok());
        let Some(raw) = raw.filter(|raw| self.bytes + raw.get().len() <= MAX_BYTES) else {
            self.is_cut = true;
            return false;
        };
        self.bytes += raw.get().len();
        self.answers.insert(key(path), raw);
        true
    }
}

fn key(path: &str) -> String {
    format!("{}{path}", api::BASE)
}

fn next_number(part: &Value) -> Option<u64> {
    part.get("next")?.as_u64()
}

fn next_change(part: &Value) -> Option<u64> {
    next_number(part.get("changes")?)
}

/// Answers a request with the role View: the content type and the bytes.
fn request(api: &Api, path: &str) -> Result<(&'static str, Vec<u8>), ApiError> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let RouteMatch::Route(route, parameters) = api::find(&Method::GET, path) else {
        return Err(ApiError::not_found(format!("The API has nothing at {path:?}.")));
    };
    let parameters = api::decoded(parameters)?;
    let query = Query::parse(query);
    let request = ApiRequest { parameters, query, body: &[], role: Role::View, person: "" };
    let reply = (route.answer)(api, &request)?;
    match reply.body {
        ReplyContent::Whole(bytes) => Ok((reply.content_type, bytes.into())),
        ReplyContent::Stream(_) => Err(ApiError::not_found("A stream cannot be exported.")),
    }
}

/// Encodes a text for a URL as `encodeURIComponent` does.
fn encoded(text: &str) -> String {
    let mut url = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

/// The page with its scripts, its style and the recorded answers, which are JSON.
fn page(data: &str) -> String {
    let mut imports = serde_json::Map::new();
    for asset in assets::ALL.iter().filter(|asset| asset.is_script()) {
        let script = String::from_utf8_lossy(asset.bytes).replace("from './", &format!("from '{MODULES}"));
        let url = format!("data:text/javascript;base64,{}", BASE64.encode(script));
        imports.insert(format!("{MODULES}{}", asset.name), Value::String(url));
    }
    let imports = json!({ "imports": imports }).to_string();
    let policy = format!(
        "default-src 'none'; script-src data: {} {}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types haft",
        policy_source(&imports),
        policy_source(START)
    );
    let style = assets::text("style.css");
    let html = assets::text("index.html");
    // The policy comes first, so that it applies to everything after it.
    let head = format!("<head>\n<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
    let html = html.replace("<head>", &head);
    let html =
        html.replace("<link rel=\"stylesheet\" href=\"style.css\">", &format!("<style>{style}</style>"));
    let html = html.replace("<script type=\"module\" src=\"main.js\"></script>\n", "");
    let (start, end) = html.split_once("</body>").unwrap_or((&html, ""));
    // Allocated in full, so that the long answers are copied only once.
    let mut page =
        String::with_capacity(start.len() + data.len() + data.len() / 8 + imports.len() + end.len());
    page.push_str(start);
    page.push_str("<script type=\"application/json\" id=\"export\">");
    for (number, part) in data.split('<').enumerate() {
        // Escaped, as JSON allows, so that no data can begin a tag.
        page.push_str(if number > 0 { "\\u003c" } else { "" });
        page.push_str(part);
    }
    let _ = write!(
        page,
        "</script>\n<script type=\"importmap\">{imports}</script>\n<script type=\"module\">{START}</script>\n</body>{end}"
    );
    page
}

/// The source expression by which a policy allows this script.
fn policy_source(script: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(script.as_bytes()).into();
    format!("'sha256-{}'", BASE64.encode(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exported_page_asks_for_no_file_and_holds_no_markup_of_its_data() {
        let html =
            page(&json!({ "session": "</script><img src=x onerror=alert(1)>", "responses": {} }).to_string());
        assert!(!html.contains("<img"), "data is never markup");
        assert!(!html.contains("src=\"main.js\"") && !html.contains("href=\"style.css\""));
        assert_eq!(html.matches("</script>").count(), 3);
        assert!(!html.contains("from './"), "scripts import each other by name");
    }

    #[test]
    fn parts_of_lists_are_those_that_the_page_asks_for() {
        let script = assets::text("api.js");
        for line in [
            format!("const PAGE = {MESSAGES_PART_COUNT};"),
            format!("const CHANGES_PAGE = {CHANGES_PART_COUNT};"),
        ] {
            assert!(script.contains(&line), "{line}");
        }
    }

    #[test]
    fn texts_are_encoded_as_the_page_encodes_them() {
        assert_eq!(encoded("a b/ü&(x)'~.js"), "a%20b%2F%C3%BC%26(x)'~.js");
    }
}
