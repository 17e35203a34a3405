"""Drives Haft through the Claude Agent SDK for Python: one scenario, whose facts are printed as one JSON object."""

import asyncio
import json
import os
import sys

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SystemMessage,
    ToolResultBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

HAFT = os.environ["HAFT_UNDER_TEST"]


def options(**more):
    return ClaudeAgentOptions(cli_path=HAFT, cwd=os.getcwd(), **more)


class Turn:
    """What the messages of a turn said."""

    def __init__(self):
        self.types, self.texts, self.results, self.progress, self.uuids = [], [], [], "", []
        self.result = self.session = self.mode = self.tools = None

    def take(self, message):
        if isinstance(message, SystemMessage):
            if message.subtype == "init":
                self.session = message.data["session_id"]
                self.mode, self.tools = message.data["permissionMode"], message.data["tools"]
            if message.subtype == "haft_tool_output":
                self.progress += message.data.get("output") or ""
                return
            self.types.append(f"system/{message.subtype}")
        elif isinstance(message, AssistantMessage):
            self.types.append("assistant")
            self.texts += [block.text for block in message.content if hasattr(block, "text")]
        elif isinstance(message, UserMessage):
            blocks = message.content if isinstance(message.content, list) else []
            results = [block for block in blocks if isinstance(block, ToolResultBlock)]
            if not results:
                self.uuids.append(message.uuid)
                return
            self.types.append("user")
            self.results += [{"error": bool(block.is_error), "text": str(block.content)} for block in results]
        elif isinstance(message, ResultMessage):
            self.types.append("result")
            self.result = message

    def facts(self):
        return {
            "subtype": self.result.subtype,
            "is_error": self.result.is_error,
            "result": self.result.result,
            "denials": [denial["tool_name"] for denial in self.result.permission_denials or []],
        }


async def run(prompt, **more):
    """One query; an error result ends the SDK's stream with an exception, after it was handed over."""
    turn = Turn()
    try:
        async for message in query(prompt=prompt, options=options(**more)):
            turn.take(message)
    except Exception:
        if turn.result is None or not turn.result.is_error:
            raise
    return turn


async def ask(client, prompt):
    turn = Turn()
    await client.query(prompt)
    async for message in client.receive_response():
        turn.take(message)
    return turn


async def one_shot():
    turn = await run("Hello")
    return {"types": turn.types, **turn.facts()}


async def multi_turn():
    async with ClaudeSDKClient(options()) as client:
        first, second = await ask(client, "First"), await ask(client, "Second")
    return {"same": first.session == second.session, "texts": first.texts + second.texts}


async def can_use_tool():
    asked = []

    async def decide(name, tool_input, context):
        asked.append([name, tool_input.get("command"), context.tool_use_id])
        if "secret" in tool_input["command"]:
            return PermissionResultDeny(message="Not that one.")
        if "other" in tool_input["command"]:
            return PermissionResultAllow(updated_input={**tool_input, "command": "echo changed"})
        return PermissionResultAllow()

    async with ClaudeSDKClient(options(can_use_tool=decide)) as client:
        turn = await ask(client, "Go")
    return {"asked": asked, "results": turn.results, **turn.facts()}


async def hooks():
    seen = []

    async def before(hook, call, _context):
        seen.append([hook["hook_event_name"], hook["tool_name"], call])
        if "forbidden" in json.dumps(hook["tool_input"]):
            return {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "The host forbids it.",
                }
            }
        return {}

    async def after(hook, call, _context):
        seen.append([hook["hook_event_name"], hook["tool_name"], call])
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "Seen by the host."}}

    async def fail(_hook, _call, _context):
        raise RuntimeError("the guard is broken")

    matchers = {
        "PreToolUse": [
            HookMatcher(matcher="Bash", hooks=[before]),
            HookMatcher(matcher="Write", hooks=[fail], on_failure="block"),
        ],
        "PostToolUse": [HookMatcher(matcher="Bash", hooks=[after])],
    }
    async with ClaudeSDKClient(options(hooks=matchers, permission_mode="acceptEdits", allowed_tools=["Bash"])) as client:
        turn = await ask(client, "Go")
    return {"seen": seen, "results": turn.results}


async def sdk_server():
    @tool("add", "Adds two numbers", {"a": float, "b": float})
    async def add(arguments):
        return {"content": [{"type": "text", "text": f"sum {arguments['a'] + arguments['b']:g}"}]}

    server = create_sdk_mcp_server("calc", "1.0.0", [add])
    async with ClaudeSDKClient(options(mcp_servers={"calc": server}, allowed_tools=["mcp__calc__add"])) as client:
        turn = await ask(client, "Add")
        status = await client.get_mcp_status()
    return {
        "offered": "mcp__calc__add" in turn.tools,
        "results": turn.results,
        "servers": [[server["name"], server["status"]] for server in status["mcpServers"]],
    }


async def interrupt():
    async with ClaudeSDKClient(options(include_partial_messages=True)) as client:
        await client.query("Wait")
        first = Turn()
        async for message in client.receive_response():
            if type(message).__name__ == "StreamEvent" and message.event["type"] == "content_block_delta":
                await client.interrupt()
            first.take(message)
        second = await ask(client, "Go on")
    return {"first": first.result.subtype, "second": second.facts()["result"]}


async def resume():
    first = await run("First")
    second = await run("Second", resume=first.session)
    forked = await run("Third", resume=first.session, fork_session=True)
    return {"same": first.session == second.session, "forked": forked.session != first.session}


async def structured_output():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    turn = await run("Count", output_format={"type": "json_schema", "schema": schema})
    return {"subtype": turn.result.subtype, "output": turn.result.structured_output}


async def max_turns():
    turn = await run("Go", max_turns=1, permission_mode="bypassPermissions")
    return {"subtype": turn.result.subtype, "is_error": turn.result.is_error, "turns": turn.result.num_turns}


async def permission_modes():
    async with ClaudeSDKClient(options(permission_mode="plan")) as client:
        plan = await ask(client, "Write")
        await client.set_permission_mode("acceptEdits")
        edits = await ask(client, "Write")
    return {
        "modes": [plan.mode, edits.mode],
        "errors": [result["error"] for result in plan.results + edits.results],
        "denials": [plan.facts()["denials"], edits.facts()["denials"]],
    }


async def rewind():
    more = {"permission_mode": "bypassPermissions", "enable_file_checkpointing": True}
    async with ClaudeSDKClient(options(extra_args={"replay-user-messages": None}, **more)) as client:
        first = await ask(client, "Note")
        second = await ask(client, "Change")
        before = sorted(os.listdir("."))
        await client.rewind_files(second.uuids[0])
        return {"before": before, "after": sorted(os.listdir(".")), "replayed": len(first.uuids)}


async def live_output():
    turn = await run("Go", permission_mode="bypassPermissions")
    return {"output": turn.progress}


print(json.dumps(asyncio.run(globals()[sys.argv[1]]())))
