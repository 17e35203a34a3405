// The TypeScript SDK's client of the first line (1.x), which knows the old era only. See client.py for its use.

import { bearer, drive, environment, load } from './common.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ElicitRequestSchema } = load('@modelcontextprotocol/sdk/types.js');

await drive('client_v1.mjs', async (wanted, answer) => {
    const [command, ...args] = wanted.command;
    const transport = wanted.http
        ? new StreamableHTTPClientTransport(new URL(wanted.http), bearer(wanted.token))
        : new StdioClientTransport({ command, args, env: environment(), stderr: 'inherit' });
    // The client keeps the version to itself, but tells it to a transport that wants to know.
    let protocol;
    const tell = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = version => {
        protocol = version;
        tell?.(version);
    };
    const capabilities = answer ? { elicitation: {} } : {};
    const client = new Client({ name: 'client-v1', version: '1.0.0' }, { capabilities });
    if (answer) {
        client.setRequestHandler(ElicitRequestSchema, request => answer(request.params));
    }
    await client.connect(transport);
    const call = (params, options) => client.callTool(params, undefined, options);
    return { client, call, protocol: () => protocol };
});
