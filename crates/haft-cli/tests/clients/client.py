#!/usr/bin/env python3
"""The Python SDK's client, led through one connection by a script.

    client.py [--mode auto|legacy|2026-07-28] [--answers JSON] STEPS -- COMMAND [ARG…]
    client.py [--mode …] [--answers …] --http URL [--token TOKEN] STEPS

STEPS is a JSON array; the two TypeScript clients take the same (common.mjs):

    {"list": "tools" | "resources" | "prompts"}                all pages of it
    {"call": TOOL, "arguments": {…}}                           a tool; what it tells on its way is kept
    {"call": TOOL, "arguments": {…}, "until": WORD}            the same, cancelled as soon as it tells WORD
    {"read": URI}, {"read": {"link_of": INDEX}}                a resource; the one that an earlier result links to
    {"prompt": NAME, "arguments": {…}}                         a prompt

`--answers` is an array of what the user says to each question, such as {"action": "accept", "content": {…}}; without it
the client cannot ask.

Prints {"protocol", "server", "steps", "asked"} as one line of JSON, an error of a step in its place; when there is no
connection, says why on stderr and ends with 1.
"""

import argparse
import asyncio
import json
import os
import sys

import anyio
import httpx2
import mcp_types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

# A server that pages for ever must not keep a test.
PAGES = 100
# Nor must one that says nothing.
PATIENCE = 60


def arguments():
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", default="auto")
    parser.add_argument("--answers", type=json.loads)
    parser.add_argument("--http")
    parser.add_argument("--token")
    parser.add_argument("steps", type=json.loads)
    parsed = parser.parse_args(given[:cut])
    parsed.command = given[cut + 1:]
    if bool(parsed.http) == bool(parsed.command):
        parser.error("either --http URL or -- COMMAND")
    return parsed


def target(given):
    if given.http:
        headers = {"Authorization": f"Bearer {given.token}"} if given.token else {}
        return streamable_http_client(given.http, http_client=httpx2.AsyncClient(headers=headers, timeout=PATIENCE))
    # The SDK hands down only what it holds to be safe; what is meant for Haft goes along.
    ours = {name: value for name, value in os.environ.items() if name.startswith("HAFT_")}
    return StdioServerParameters(command=given.command[0], args=given.command[1:], env=ours)


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def listed(client, what):
    items, cursor, pages = [], None, 0
    while pages < PAGES:
        page = await getattr(client, f"list_{what}")(cursor=cursor)
        items += plain(page)[what]
        cursor, pages = page.next_cursor, pages + 1
        if cursor is None:
            break
    return {"items": items, "pages": pages}


async def called(client, step):
    told, done = [], {}
    with anyio.CancelScope() as scope:
        async def hear(progress, total, message):
            told.append(message)
            if step.get("until") and step["until"] in (message or ""):
                scope.cancel()
        done = plain(await client.call_tool(step["call"], step.get("arguments", {}), progress_callback=hear))
    return {**done, "told": told, "cancelled": scope.cancelled_caught}


async def take(client, step, before):
    if "list" in step:
        return await listed(client, step["list"])
    if "call" in step:
        return await called(client, step)
    if "read" in step:
        uri = step["read"]
        if isinstance(uri, dict):
            content = before[uri["link_of"]]["content"]
            uri = next(block["uri"] for block in content if block["type"] == "resource_link")
        return plain(await client.read_resource(uri))
    return plain(await client.get_prompt(step["prompt"], step.get("arguments")))


async def drive(given):
    asked, answers = [], iter(given.answers or [])

    async def answer(_context, params):
        asked.append(plain(params))
        return mcp_types.ElicitResult(**next(answers))

    user = {"elicitation_callback": answer} if given.answers is not None else {}
    async with Client(target(given), mode=given.mode, read_timeout_seconds=PATIENCE, **user) as client:
        steps, stamp = [], None
        for step in given.steps:
            try:
                steps.append(await take(client, step, steps))
            except MCPError as error:
                steps.append({"error": {"code": error.error.code, "message": error.error.message}})
            stamp = stamp or steps[-1].get("_meta", {}).get("io.modelcontextprotocol/serverInfo")
        # With a pinned version nothing is asked beforehand; then only the results tell whose they are.
        server = plain(client.server_info) if client.server_info else stamp
        return {
            "protocol": client.protocol_version,
            "server": server and {"name": server["name"], "version": server["version"]},
            "steps": steps,
            "asked": asked,
        }


def reasons(error):
    """What lies within the groups that the SDK's tasks fail in."""
    inner = getattr(error, "exceptions", ())
    return [reason for each in inner for reason in reasons(each)] or [f"{type(error).__name__}: {error}"]


def main():
    try:
        print(json.dumps(asyncio.run(drive(arguments()))))
    except Exception as error:  # whatever it is, the test wants to read it
        sys.exit("client.py: " + "; ".join(reasons(error)))


if __name__ == "__main__":
    main()
