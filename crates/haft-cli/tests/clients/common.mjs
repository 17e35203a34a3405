// What the two TypeScript clients share: the command line, the module folder, the steps and the one line of JSON. Use and
// steps are those of client.py; HAFT_MCP_NODE names the node_modules folder that holds the SDKs.

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
        options: { http: text, token: text, answers: text, mode: { ...text, default: 'auto' } },
        allowPositionals: true
    });
    const command = words.slice(cut + 1);
    if (positionals.length !== 1 || Boolean(values.http) === command.length > 0) {
        throw new Error('usage: STEPS, and either --http URL or -- COMMAND');
    }
    const answers = values.answers && JSON.parse(values.answers);
    return { ...values, answers, steps: JSON.parse(positionals[0]), command };
}

async function listed(client, what) {
    const list = `list${what[0].toUpperCase()}${what.slice(1)}`;
    const items = [];
    let [cursor, pages] = [undefined, 0];
    do {
        // The second line's client turns the pages by itself unless it is told which.
        const page = await client[list](cursor === undefined ? {} : { cursor });
        items.push(...page[what]);
        cursor = page.nextCursor;
        pages += 1;
    } while (cursor !== undefined && pages < PAGES);
    return { items, pages };
}

async function called(call, step) {
    const told = [];
    const stop = new AbortController();
    const onprogress = ({ message }) => {
        told.push(message);
        if (step.until && message?.includes(step.until)) {
            stop.abort('enough');
        }
    };
    try {
        const done = await call({ name: step.call, arguments: step.arguments ?? {} }, { onprogress, signal: stop.signal });
        return { ...done, told, cancelled: false };
    } catch (error) {
        if (stop.signal.aborted) {
            return { told, cancelled: true };
        }
        throw error;
    }
}

async function take({ client, call }, step, before) {
    if (step.list) {
        return listed(client, step.list);
    }
    if (step.call) {
        return called(call, step);
    }
    if (step.read) {
        const uri = step.read.link_of === undefined
            ? step.read
            : before[step.read.link_of].content.find(block => block.type === 'resource_link').uri;
        return client.readResource({ uri });
    }
    return client.getPrompt({ name: step.prompt, arguments: step.arguments });
}

/** `connect` takes the command line and the user, and gives `{ client, call(params, options), protocol() }`, connected. */
export async function drive(name, connect) {
    try {
        const wanted = given();
        const asked = [];
        const answer = wanted.answers && (params => {
            asked.push(params);
            return wanted.answers[asked.length - 1];
        });
        const connected = await connect(wanted, answer);
        const steps = [];
        for (const step of wanted.steps) {
            try {
                steps.push(await take(connected, step, steps));
            } catch (error) {
                steps.push({ error: { code: error?.code, message: String(error?.message ?? error) } });
            }
        }
        const info = connected.client.getServerVersion();
        const server = info ? { name: info.name, version: info.version } : null;
        const line = JSON.stringify({ protocol: connected.protocol(), server, steps, asked });
        await connected.client.close();
        console.log(line);
    } catch (error) {
        console.error(`${name}: ${error?.message ?? error}${error?.cause ? ` (${error.cause})` : ''}`);
        process.exit(1);
    }
}
