//! Results of calls as MCP has them.

use haft::mcp_form::McpResult;
use haft_mcp::wire::ProtocolVersion;
use haft_runtime::CallResult;
use serde_json::{Value, json};

/// The result of a call, with a link to the full output if it was cut.
pub(super) fn call_result(done: CallResult, version: ProtocolVersion) -> Value {
    let CallResult { output: given, receipt, .. } = done;
    let mut all = McpResult::new(given, version.is_stateless());
    let id = receipt.id;
    if receipt.full_output.is_some() && version >= ProtocolVersion::V2025_06_18 {
        all.content.push(json!({
            "type": "resource_link", "uri": super::resources::output_uri(id), "name": format!("output of call {id}"),
            "description": "All of the output, of which the text shows a part", "mimeType": "text/plain",
        }));
    }
    if id > 0 {
        all.meta.insert("haft/call".to_owned(), json!(id));
    }
    all.into_value()
}
