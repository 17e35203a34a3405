#!/usr/bin/env python3
"""The Python SDK's client, driven through one connection: it lists the tools and calls one of them.

    client.py [--mode auto|legacy|2026-07-28] TOOL JSON -- COMMAND [ARG…]
    client.py [--mode …] --http URL [--token TOKEN] TOOL JSON

Prints {"protocol", "server", "tools", "result"} as one line of JSON; on failure says why on stderr and ends with 1.
"""

import argparse
import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

# A server that pages for ever must not keep a test.
PAGES = 100


def arguments():
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", default="auto")
    parser.add_argument("--http")
    parser.add_argument("--token")
    parser.add_argument("tool")
    parser.add_argument("arguments", type=json.loads)
    parsed = parser.parse_args(given[:cut])
    parsed.command = given[cut + 1:]
    if bool(parsed.http) == bool(parsed.command):
        parser.error("either --http URL or -- COMMAND")
    return parsed


def target(given):
    if given.http:
        headers = {"Authorization": f"Bearer {given.token}"} if given.token else {}
        return streamable_http_client(given.http, http_client=httpx2.AsyncClient(headers=headers, timeout=30))
    # The SDK hands down only what it holds to be safe; what is meant for Haft goes along.
    ours = {name: value for name, value in os.environ.items() if name.startswith("HAFT_")}
    return StdioServerParameters(command=given.command[0], args=given.command[1:], env=ours)


async def drive(given):
    async with Client(target(given), mode=given.mode, read_timeout_seconds=30) as client:
        tools, cursor = [], None
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        result = await client.call_tool(given.tool, given.arguments)
        result = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        # With a pinned version nothing is asked beforehand; then only the results tell whose they are.
        stamp = result.get("_meta", {}).get("io.modelcontextprotocol/serverInfo")
        server = client.server_info.model_dump() if client.server_info else stamp
        return {
            "protocol": client.protocol_version,
            "server": server and {"name": server["name"], "version": server["version"]},
            "tools": tools,
            "result": result,
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
