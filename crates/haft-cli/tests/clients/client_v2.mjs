// The TypeScript SDK's client of the second line (2.x), which knows both eras. See client.py for its use.

import { bearer, drive, environment, load } from './common.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');

await drive('client_v2.mjs', async (wanted, answer) => {
    const [command, ...args] = wanted.command;
    const transport = wanted.http
        ? new StreamableHTTPClientTransport(new URL(wanted.http), bearer(wanted.token))
        : new StdioClientTransport({ command, args, env: environment(), stderr: 'inherit' });
    const mode = ['auto', 'legacy'].includes(wanted.mode) ? wanted.mode : { pin: wanted.mode };
    const capabilities = answer ? { elicitation: {} } : {};
    const client = new Client({ name: 'client-v2', version: '1.0.0' }, { capabilities, versionNegotiation: { mode } });
    if (answer) {
        client.setRequestHandler('elicitation/create', request => answer(request.params));
    }
    await client.connect(transport);
    const call = (params, options) => client.callTool(params, options);
    return { client, call, protocol: () => client.getNegotiatedProtocolVersion() };
});
