// What the two TypeScript clients share: the command line, the module folder and the one line of JSON.
//
//     client_v1.mjs                  TOOL JSON -- COMMAND [ARG…]
//     client_v1.mjs --http URL [--token TOKEN] TOOL JSON
//     client_v2.mjs [--mode auto|legacy|2026-07-28] and the same
//
// HAFT_MCP_NODE names the node_modules folder that holds the SDKs. Prints {"protocol", "server", "tools", "result"}; on
// failure says why on stderr and ends with 1.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

// A server that pages for ever must not keep a test.
const PAGES = 100;

/** Loads a package from the folder that tests were given; this file lies outside of it. */
export const load = createRequire(join(process.env.HAFT_MCP_NODE ?? '.', 'here.js'));

/** What the SDK hands down by itself is little; what is meant for Haft goes along. */
export const environment = () =>
    Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('HAFT_')));

export const bearer = token => (token ? { requestInit: { headers: { Authorization: `Bearer ${token}` } } } : {});

function given() {
    const words = process.argv.slice(2);
    const cut = words.includes('--') ? words.indexOf('--') : words.length;
    const text = { type: 'string' };
    const { values, positionals } = parseArgs({
        args: words.slice(0, cut),
        options: { http: text, token: text, mode: { ...text, default: 'auto' } },
        allowPositionals: true
    });
    const command = words.slice(cut + 1);
    if (positionals.length !== 2 || Boolean(values.http) === command.length > 0) {
        throw new Error('usage: TOOL JSON, and either --http URL or -- COMMAND');
    }
    return { ...values, tool: positionals[0], arguments: JSON.parse(positionals[1]), command };
}

/** `connect` takes the command line and gives `{ client, protocol() }`, connected. */
export async function drive(name, connect) {
    try {
        const wanted = given();
        const { client, protocol } = await connect(wanted);
        const tools = [];
        let cursor;
        for (let page = 0; page < PAGES && (page === 0 || cursor !== undefined); page++) {
            const listed = await client.listTools(cursor === undefined ? {} : { cursor });
            tools.push(...listed.tools.map(tool => tool.name));
            cursor = listed.nextCursor;
        }
        const result = await client.callTool({ name: wanted.tool, arguments: wanted.arguments });
        const info = client.getServerVersion();
        const server = info ? { name: info.name, version: info.version } : null;
        const line = JSON.stringify({ protocol: protocol(), server, tools, result });
        await client.close();
        console.log(line);
    } catch (error) {
        console.error(`${name}: ${error?.message ?? error}${error?.cause ? ` (${error.cause})` : ''}`);
        process.exit(1);
    }
}
