// The tab's side of the event stream, and how views combine loaded data with it.
/** @import * as T from './types.js' */
/** @import {LiveEvent, StreamState, StreamedEvent} from './types.js' */

import { parseJson } from './json.js';
import { EventStream } from './stream.js';
import { getToken } from './token.js';

const WELCOME_MS = 3_000;

/** @typedef {(event: LiveEvent, watched: boolean) => void} Handler */

/** @type {Set<Handler>} */
const handlers = new Set();
/** @type {Set<(state: StreamState) => void>} */
const stateHandlers = new Set();
/** @type {StreamState} */
let state = 'connecting';
/** What the token may do. @type {T.Role} */
let role = 'view';
/** @type {(() => void) | null} */
let retry = null;
/** Resolves once every later event will reach this tab. */
let joined = Promise.resolve();

/** @param {StreamState} next */
function onState(next) {
	state = next;
	for (const handler of stateHandlers) handler(next);
}

/** @param {LiveEvent} event @param {boolean} watched whether a tab is visible */
function onEvent(event, watched) {
	for (const handler of [...handlers]) handler(event, watched);
}

/** Parses here, because whole numbers that JavaScript would round cannot be sent from a worker to a tab.
 * @param {StreamedEvent} event @param {boolean} watched */
const onStreamed = (event, watched) => onEvent({ ...event, data: parseJson(event.data) }, watched);

/** Starts the stream after the last known event, or continues it with another token.
 * @param {T.Meta} meta with the version, because tabs of different versions cannot share a worker */
export function start(meta) {
	role = meta.role;
	if (retry) retry();
	else if ('SharedWorker' in globalThis) startShared(meta.position, meta.version);
	else startHere(meta.position);
}

/** @param {number} position @param {string} version */
function startShared(position, version) {
	const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy('haft', {
		createScriptURL: (/** @type {string} */ url) => {
			if (url !== 'worker.js') throw new TypeError('not the worker of this page');
			return url;
		},
	});
	const worker = new SharedWorker(policy?.createScriptURL('worker.js') ?? 'worker.js', { type: 'module', name: `haft ${version}` });
	const { port } = worker;
	// Only secure contexts have locks; elsewhere the worker drops a tab only when the tab says `bye`.
	const lock = 'locks' in navigator ? `haft-tab-${Math.random().toString(36).slice(2)}` : '';
	const visible = () => !document.hidden;
	const hello = () => port.postMessage({ kind: 'hello', token: getToken(), role, position, visible: visible(), lock });
	joined = new Promise((resolve) => {
		// A worker that does not start must not keep the page empty.
		const timer = setTimeout(() => {
			port.onmessage = null;
			startHere(position);
			resolve();
		}, WELCOME_MS);
		port.onmessage = ({ data }) => {
			if (data.kind === 'event') onStreamed(data.event, data.watched);
			else onState(data.state);
			if (data.kind === 'welcome') {
				clearTimeout(timer);
				resolve();
			}
		};
	});
	if (!lock) hello();
	else {
		navigator.locks.request(lock, () => {
			hello();
			return new Promise(() => {});
		});
	}
	document.addEventListener('visibilitychange', () => port.postMessage({ kind: 'visible', visible: visible() }));
	addEventListener('pagehide', () => port.postMessage({ kind: 'bye' }));
	addEventListener('pageshow', ({ persisted }) => {
		if (!persisted) return;
		hello();
		onEvent({ event: 'reset', id: 0, data: null }, true);
	});
	retry = () => hello();
}

/** A stream for this tab alone, open only while the tab is visible.
 * @param {number} position */
function startHere(position) {
	/** @type {EventStream | null} */
	let stream = null;
	const update = () => {
		if (document.hidden) {
			position = stream?.position ?? position;
			stream?.close();
			stream = null;
		} else stream ??= new EventStream(getToken, position, (event) => onStreamed(event, true), onState);
	};
	document.addEventListener('visibilitychange', update);
	update();
	retry = () => stream?.retry();
}

/** @param {Handler} handler @param {AbortSignal} [signal] */
export function onLive(handler, signal) {
	if (signal?.aborted) return;
	handlers.add(handler);
	signal?.addEventListener('abort', () => handlers.delete(handler));
}

/** @param {(state: StreamState) => void} handler @param {AbortSignal} [signal] */
export function onStreamState(handler, signal) {
	handler(state);
	stateHandlers.add(handler);
	signal?.addEventListener('abort', () => stateHandlers.delete(handler));
}

/** Loads data, then applies the events since, so that none is missed; loads again after a gap.
 * Events must be applied by id, because the loaded data may already include them.
 * @param {AbortSignal} signal @param {() => Promise<void>} load @param {Handler} apply */
export async function follow(signal, load, apply) {
	/** @type {[LiveEvent, boolean][] | null} */
	let queue = [];
	let isFailed = false;
	const reload = async () => {
		/** @type {[LiveEvent, boolean][]} */
		const own = (queue = []);
		isFailed = false;
		try {
			await load();
		} catch (error) {
			isFailed = queue === own;
			throw error;
		}
		if (signal.aborted || queue !== own) return;
		queue = null;
		for (const [event, watched] of own) apply(event, watched);
	};
	onLive((event, watched) => {
		if (event.event === 'reset') reload().catch(() => {});
		else if (!queue) apply(event, watched);
		else if (!isFailed) queue.push([event, watched]);
	}, signal);
	await joined;
	if (signal.aborted) return;
	onStreamState((next) => {
		if (next === 'live' && isFailed) reload().catch(() => {});
	}, signal);
	await reload();
}
