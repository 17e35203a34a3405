//! The workspace's files and the full outputs of calls as resources. Reading one is a call: scoped and recorded.

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

/// The largest number of files listed.
const MAX_FILES: usize = 5_000;
/// The largest file returned.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// The number of latest calls searched for full outputs.
const MAX_CALLS: usize = 200;

/// The URI of a call's full output.
pub(super) fn output_uri(id: i64) -> String {
    format!("haft://call/{id}/output")
}

pub(super) fn templates() -> Vec<Value> {
    vec![
        json!({"uriTemplate": "file://{/path*}", "name": "file", "title": "A file", "description": "A file by its absolute path"}),
        json!({
            "uriTemplate": "haft://call/{id}/output", "name": "output", "title": "The output of a call",
            "description": "The full output of a call whose result was truncated", "mimeType": "text/plain",
        }),
    ]
}

/// The files of the workspace, sorted, and the outputs that were truncated in their results.
pub(super) fn list(runtime: &Runtime, options: CallOptions) -> Result<Vec<Value>, RpcError> {
    let call = Call::new("mcp_resources", "resources/list", json!({}));
    let done = runtime.run_blocking(call, CallOptions { tool: Some(Arc::new(ListResources)), ..options });
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
        limit: MAX_CALLS,
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

/// Reads a resource.
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
            let done =
                runtime.run_blocking(call, CallOptions { tool: Some(Arc::new(ReadResource)), ..options });
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

/// The full output of a call of this workspace.
fn output(runtime: &Runtime, id: i64) -> Option<String> {
    let ledger = runtime.ledger().ok()?;
    let receipt = ledger.receipt(id).ok().filter(|receipt| receipt.workspace == runtime.workspace())?;
    let bytes = ledger.blob(&receipt.full_output?).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// No truncation: a resource is read as a whole.
const UNBOUNDED: Bound = Bound { max_chars: usize::MAX, ..Bound::DEFAULT };

/// The tools behind resources, which rules may name.
pub(crate) fn resource_tools() -> [(String, Vec<EffectKind>); 2] {
    [ListResources::NAME, ReadResource::NAME].map(|name| (name.to_owned(), vec![EffectKind::Read]))
}

/// Lists the files of the workspace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

struct ListResources;

impl Tool for ListResources {
    const NAME: &'static str = "resources/list";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = UNBOUNDED;
    type Input = NoArguments;
    type Plan = PathBuf;

    fn plan(&self, _input: NoArguments, at: &Planning) -> Result<Planned<PathBuf>, ToolError> {
        Ok(Planned::new([Effect::Read { path: at.workspace.clone() }], at.workspace.clone()))
    }

    fn perform(&self, root: PathBuf, world: &dyn World) -> Result<Output, ToolError> {
        let found: Mutex<Vec<PathBuf>> = Mutex::default();
        let keep = |path: &Path| {
            let mut found = lock(&found);
            found.push(path.to_owned());
            if found.len() < MAX_FILES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
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
struct PathArgument {
    /// The file's absolute path.
    path: String,
}

struct ReadResource;

impl Tool for ReadResource {
    const NAME: &'static str = "resources/read";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = UNBOUNDED;
    type Input = PathArgument;
    type Plan = PathBuf;

    fn plan(&self, input: PathArgument, at: &Planning) -> Result<Planned<PathBuf>, ToolError> {
        let path = at.only_absolute("path", &input.path)?;
        Ok(Planned::new([Effect::Read { path: path.clone() }], path))
    }

    fn perform(&self, path: PathBuf, world: &dyn World) -> Result<Output, ToolError> {
        let open = world.files().open(&path)?;
        let mut bytes = Vec::new();
        let read = open.reader.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| ToolError::io(format!("read {}", path.display()), &error))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(ToolError::failed(format!(
                "{} has more than {MAX_FILE_BYTES} bytes, the limit for a resource. Read it in parts with a tool.",
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
