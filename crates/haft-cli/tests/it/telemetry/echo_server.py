"""An MCP server with a tool that returns the `_meta` of its call."""

import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = {}
    if request["method"] == "initialize":
        version = request["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}
    elif request["method"] == "tools/list":
        result = {"tools": [{"name": "meta", "description": "Returns _meta.", "inputSchema": {"type": "object"}}]}
    elif request["method"] == "tools/call":
        text = json.dumps(request["params"].get("_meta", {}))
        result = {"content": [{"type": "text", "text": text}]}
    else:
        error = {"code": -32601, "message": "unknown"}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
