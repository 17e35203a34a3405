// The shared worker: one event stream for all tabs, because browsers open only six connections to a server.
/** @import {Role, StreamState, StreamedEvent} from './types.js' */

import { EventStream } from './stream.js';

/** @typedef {{token: string, role: Role, visible: boolean}} Tab */

/** @type {Map<MessagePort, Tab>} */
const tabs = new Map();
/** @type {EventStream | null} */
let stream = null;
/** @type {StreamState} */
let state = 'connecting';
let token = '';
/** Tokens that the server refused since the stream was last live. @type {Set<string>} */
const refused = new Set();
/** @type {Role[]} lowest first */
const ROLES = ['view', 'approve', 'act'];

/** @param {object} message */
function broadcast(message) {
	for (const port of tabs.keys()) port.postMessage(message);
}

/** Switches to the token with the highest role, because questions wait only for streams whose token may answer them; returns
 * whether the token changed.
 * @returns {boolean} */
function choose() {
	const usable = [...tabs.values()].filter((tab) => !refused.has(tab.token));
	const best = usable.sort((a, b) => ROLES.indexOf(b.role) - ROLES.indexOf(a.role))[0];
	if (!best || best.token === token) return false;
	// Another token with the same role is no reason for a new stream.
	if (usable.some((tab) => tab.token === token && tab.role === best.role)) return false;
	token = best.token;
	return true;
}

/** @param {StreamState} next */
function onState(next) {
	if (next === 'live') refused.clear();
	if (next === 'refused') {
		refused.add(token);
		if (choose()) {
			// The stream begins to wait only after onState, so it is woken after that.
			setTimeout(() => stream?.retry(), 0);
			return;
		}
	}
	state = next;
	broadcast({ kind: 'state', state });
}

/** @param {StreamedEvent} event */
function onEvent(event) {
	broadcast({ kind: 'event', event, watched: [...tabs.values()].some((tab) => tab.visible) });
}

/** @param {MessagePort} port @param {{token: string, role: Role, position: number, visible: boolean, lock: string}} hello */
function join(port, hello) {
	// The tab holds this lock as long as it lives, so the worker gets it when the tab is gone.
	if (hello.lock && !tabs.has(port)) navigator.locks?.request(hello.lock, () => leave(port));
	tabs.set(port, { token: hello.token, role: hello.role, visible: hello.visible });
	if (!stream) {
		token = hello.token;
		stream = new EventStream(() => token, hello.position, onEvent, onState);
	} else if (state !== 'live') {
		refused.delete(hello.token);
		state = 'connecting';
		if (choose()) stream.reconnect();
		else stream.retry();
	} else if (choose()) stream.reconnect();
	port.postMessage({ kind: 'welcome', state, position: stream.position });
}

/** @param {MessagePort} port */
function leave(port) {
	tabs.delete(port);
	if (tabs.size > 0) {
		if (choose()) stream?.reconnect();
		return;
	}
	stream?.close();
	stream = null;
	state = 'connecting';
}

const scope = /** @type {{onconnect: (event: MessageEvent) => void}} */ (/** @type {unknown} */ (globalThis));
scope.onconnect = ({ ports: [port] }) => {
	if (!port) return;
	port.onmessage = ({ data }) => {
		const tab = tabs.get(port);
		if (data.kind === 'hello') join(port, data);
		else if (data.kind === 'bye') leave(port);
		else if (data.kind === 'visible' && tab) tab.visible = data.visible;
		else if (data.kind === 'retry') stream?.retry();
	};
};
