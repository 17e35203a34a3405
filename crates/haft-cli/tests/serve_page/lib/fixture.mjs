// A workspace, a ledger, `haft serve` over them, and other processes of Haft beside it.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const HAFT = process.env.HAFT_TEST_PROGRAM;
const run = promisify(execFile);
/** How long something may take that comes at once on an idle machine. */
export const TIMEOUT_MS = 120_000;

export const TOKENS = { view: 'view-0123456789abcdef', approve: 'approve-0123456789abcdef', act: 'act-0123456789abcdef' };

/** End processes and remove folders. @type {Set<() => void>} */
const cleanups = new Set();

export function stopAll() {
	for (const clean of cleanups) clean();
	cleanups.clear();
}
process.on('exit', stopAll);

export class Fixture {
	constructor() {
		this.base = mkdtempSync(join(tmpdir(), 'haft-page-'));
		cleanups.add(() => rmSync(this.base, { recursive: true, force: true }));
		this.workspace = join(this.base, 'project');
		this.home = join(this.base, 'home');
		this.config = join(this.base, 'haft.toml');
		this.tokens = join(this.home, 'serve/tokens');
		mkdirSync(this.workspace);
		mkdirSync(join(this.home, 'serve'), { recursive: true });
		const lines = Object.entries(TOKENS).map(([role, token]) => `${role} ${token}\n`);
		writeFileSync(this.tokens, lines.join(''), { mode: 0o600 });
		// The models of this machine's user must not be used.
		const kept = Object.entries(process.env).filter(([name]) => !/_(API_KEY|BASE_URL|AUTH_TOKEN)$/.test(name));
		this.env = {
			...Object.fromEntries(kept),
			HAFT_HOME: this.home,
			HAFT_CONFIG: this.config,
			CLAUDE_CONFIG_DIR: join(this.base, 'claude'),
			OLLAMA_HOST: '127.0.0.1:1',
			HOME: this.base,
		};
	}

	path(name) {
		return join(this.workspace, name);
	}

	write(name, content) {
		writeFileSync(this.path(name), content);
	}

	read(name) {
		return readFileSync(this.path(name), 'utf8');
	}

	settings(text) {
		writeFileSync(this.config, text);
	}

	/** The requests that the server has answered. */
	accessLog() {
		const lines = readFileSync(join(this.home, 'serve/access.log'), 'utf8').split('\n');
		return lines.filter(Boolean).map((line) => JSON.parse(line));
	}

	get #options() {
		return { cwd: this.workspace, env: this.env };
	}

	/** Runs Haft to its end and returns what it prints, even if its call fails. */
	async haft(...args) {
		const { stdout } = await run(HAFT, args, { ...this.#options, maxBuffer: 256 << 20 }).catch((error) => error);
		return stdout;
	}

	/** Starts Haft. */
	start(args, stdio = ['ignore', 'ignore', 'ignore']) {
		const child = spawn(HAFT, args, { ...this.#options, stdio });
		const kill = () => child.kill('SIGKILL');
		cleanups.add(kill);
		child.on('exit', () => cleanups.delete(kill));
		return child;
	}

	call(tool, input) {
		return this.haft('call', tool, JSON.stringify(input));
	}

	bash(command) {
		return this.call('Bash', { command });
	}

	/** Starts `haft serve`. */
	async serve(port = 0) {
		const child = this.start(['serve', '--listen', `127.0.0.1:${port}`, '--token-file', this.tokens], ['ignore', 'pipe', 'ignore']);
		const [line] = await once(createInterface({ input: child.stdout }), 'line');
		const url = new URL(line);
		return new Server(child, url);
	}

	/** A client of `haft mcp` that cannot ask its user. */
	async mcp(...flags) {
		const client = new McpClient(this.start(['mcp', ...flags], ['pipe', 'pipe', 'ignore']));
		const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
		await client.request('initialize', hello);
		client.send({ method: 'notifications/initialized' });
		return client;
	}
}

class Server {
	constructor(child, url) {
		this.child = child;
		/** Where the page is: a name that only browsers resolve. */
		this.origin = url.origin;
		this.port = Number(url.port);
	}

	/** The address of a view with a token. */
	url(view = '', role = 'act') {
		return `${this.origin}/#token=${TOKENS[role]}${view && `&view=${encodeURIComponent(view)}`}`;
	}

	/** Asks the API. */
	async api(path, body, token = TOKENS.act) {
		const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
		const answer = await fetch(`http://127.0.0.1:${this.port}/api/v1${path}`, {
			method: body === undefined ? 'GET' : 'POST',
			headers,
			body: body === undefined ? undefined : JSON.stringify(body),
		});
		if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
		return answer.json();
	}

	/** Kills it as `kill -9` does. */
	async kill() {
		const ended = once(this.child, 'exit');
		this.child.kill('SIGKILL');
		await ended;
	}
}

class McpClient {
	#next = 1;
	#waiting = new Map();

	constructor(child) {
		this.child = child;
		createInterface({ input: child.stdout }).on('line', (line) => {
			const message = JSON.parse(line);
			this.#waiting.get(message.id)?.(message);
		});
	}

	send(message) {
		this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
	}

	request(method, params) {
		const id = this.#next++;
		const answered = new Promise((resolve) => this.#waiting.set(id, resolve));
		this.send({ id, method, params });
		return answered;
	}

	/** Calls a tool; returns whether it failed, and its text. */
	async call(name, input) {
		const { result } = await this.request('tools/call', { name, arguments: input });
		return { failed: result.isError === true, text: result.content[0]?.text ?? '' };
	}

	bash(command) {
		return this.call('Bash', { command });
	}

	/** Closes its input and waits for its end. */
	async end() {
		const ended = once(this.child, 'exit');
		this.child.stdin.end();
		await ended;
	}
}
