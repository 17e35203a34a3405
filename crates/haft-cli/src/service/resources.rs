//! The workspace's files and the calls' whole outputs, by address. They are read by calls like any other: inside the scope,
//! and recorded.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use haft_ledger::ReceiptQuery;
use haft_runtime::{CallOptions, Runtime};
use haft_tool::{
    Bound, Call, Effect, EffectKind, ErrorKind, JsonSchema, Output, Planned, Planning, Tool, ToolError,
    WalkRequest, World, lock,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use haft_mcp::wire::{ProtocolVersion, RpcError};

/// The most files that are listed.
const MOST_FILES: usize = 5_000;
/// The most bytes of a file that are given out.
const MOST_BYTES: u64 = 16 << 20;
/// How many of the last calls are looked through for outputs.
const RECENT: usize = 200;

/// The address of a call's whole output.
pub(super) fn output_uri(id: i64) -> String {
    format!("haft://call/{id}/output")
}

pub(super) fn templates() -> Vec<Value> {
    vec![
        json!({"uriTemplate": "file://{/path*}", "name": "file", "title": "A file", "description": "A file by its absolute path"}),
        json!({
            "uriTemplate": "haft://call/{id}/output", "name": "output", "title": "The output of a call",
            "description": "All of a call's output where its result showed a part", "mimeType": "text/plain",
        }),
    ]
}

/// The files of the workspace, by name, and the outputs that were too long for their results.
pub(super) fn list(runtime: &Runtime, options: CallOptions) -> Result<Vec<Value>, RpcError> {
    let call = Call::new("mcp_resources", "resources/list", json!({}));
    let done = runtime.run_blocking(call, CallOptions { tool: Some(Arc::new(ListFiles)), ..options });
    if done.output.is_error() {
        return Err(RpcError::internal(done.output.as_text()));
    }
    let workspace = runtime.workspace();
    let paths: Vec<PathBuf> =
        done.output.structured.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default();
    let file = |path: &PathBuf| {
        let name = path.strip_prefix(workspace).unwrap_or(path).to_str()?;
        Some(json!({"uri": Url::from_file_path(path).ok()?.as_str(), "name": name}))
    };
    let mut all: Vec<Value> = paths.iter().filter_map(file).collect();
    let fault = |error: ToolError| RpcError::internal(error.message);
    let query = ReceiptQuery {
        session: Some(runtime.session().map_err(fault)?),
        limit: RECENT,
        ..ReceiptQuery::default()
    };
    let ledger = runtime.ledger().map_err(fault)?;
    for receipt in ledger.receipts(&query).map_err(fault)? {
        if receipt.full_output.is_some() {
            let name = format!("output of call {} ({})", receipt.id, receipt.tool);
            all.push(json!({"uri": output_uri(receipt.id), "name": name, "mimeType": "text/plain"}));
        }
    }
    Ok(all)
}

/// What a resource holds.
pub(super) fn read(
    runtime: &Runtime,
    uri: &str,
    options: CallOptions,
    version: ProtocolVersion,
) -> Result<Vec<Value>, RpcError> {
    let missing = || RpcError::resource_not_found(uri, version);
    let url = Url::parse(uri).map_err(|_| missing())?;
    match url.scheme() {
        "file" => {
            let path = url.to_file_path().map_err(|()| missing())?;
            let call = Call::new(
                "mcp_resource",
                "resources/read",
                json!({"path": path.to_str().ok_or_else(missing)?}),
            );
            let done = runtime.run_blocking(call, CallOptions { tool: Some(Arc::new(ReadFile)), ..options });
            match done.output.error_kind {
                Some(ErrorKind::FileNotFound | ErrorKind::NotFound) => Err(missing()),
                Some(_) => Err(RpcError::invalid_params(done.output.as_text())),
                None => {
                    let mut part = done.output.structured.unwrap_or_default();
                    part["uri"] = json!(uri);
                    Ok(vec![part])
                }
            }
        }
        "haft" => {
            let id = uri.strip_prefix("haft://call/").and_then(|rest| rest.strip_suffix("/output"));
            let id: i64 = id.and_then(|id| id.parse().ok()).ok_or_else(missing)?;
            let text = output(runtime, id).ok_or_else(missing)?;
            Ok(vec![json!({"uri": uri, "mimeType": "text/plain", "text": text})])
        }
        _ => Err(missing()),
    }
}

/// The whole output of a call of this workspace.
fn output(runtime: &Runtime, id: i64) -> Option<String> {
    let ledger = runtime.ledger().ok()?;
    let receipt = ledger.receipt(id).ok().filter(|receipt| receipt.workspace == runtime.workspace())?;
    let bytes = ledger.blob(&receipt.full_output?).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Nothing is cut: a resource is read as a whole.
const WHOLE: Bound = Bound { max_chars: usize::MAX, ..Bound::DEFAULT };

/// Lists the files of the workspace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

struct ListFiles;

impl Tool for ListFiles {
    const NAME: &'static str = "resources/list";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = WHOLE;
    type Input = Nothing;
    type Plan = PathBuf;

    fn plan(&self, _input: Nothing, at: &Planning) -> Result<Planned<PathBuf>, ToolError> {
        Ok(Planned::new([Effect::Read { path: at.workspace.clone() }], at.workspace.clone()))
    }

    fn perform(&self, root: PathBuf, world: &dyn World) -> Result<Output, ToolError> {
        let found: Mutex<Vec<PathBuf>> = Mutex::default();
        let keep = |path: &Path| {
            let mut found = lock(&found);
            found.push(path.to_owned());
            if found.len() < MOST_FILES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let walk = WalkRequest { root, ..WalkRequest::default() };
        world.files().walk(&walk, &mut || Box::new(|file| keep(file.path())))?;
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort();
        Ok(Output::text("").with_structured(json!(found)))
    }
}

/// Reads a file.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OnePath {
    /// The file's absolute path.
    path: String,
}

struct ReadFile;

impl Tool for ReadFile {
    const NAME: &'static str = "resources/read";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = WHOLE;
    type Input = OnePath;
    type Plan = PathBuf;

    fn plan(&self, input: OnePath, at: &Planning) -> Result<Planned<PathBuf>, ToolError> {
        let path = at.only_absolute("path", &input.path)?;
        Ok(Planned::new([Effect::Read { path: path.clone() }], path))
    }

    fn perform(&self, path: PathBuf, world: &dyn World) -> Result<Output, ToolError> {
        let open = world.files().open(&path)?;
        let mut bytes = Vec::new();
        let read = open.reader.take(MOST_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| ToolError::io(format!("read {}", path.display()), &error))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(ToolError::failed(format!(
                "{} has more than {MOST_BYTES} bytes, which is the most that a resource may have; read it in parts with a tool",
                path.display()
            )));
        }
        let part = match String::from_utf8(bytes) {
            Ok(text) => json!({"mimeType": "text/plain", "text": text}),
            Err(error) => json!({
                "mimeType": "application/octet-stream",
                "blob": base64::engine::general_purpose::STANDARD.encode(error.as_bytes()),
            }),
        };
        Ok(Output::text("").with_structured(part))
    }
}
