// Names of sessions, and links to them that show the name as soon as it is known.
/** @import * as T from './types.js' */

import * as api from './api.js';
import { batched, fill, h, raw } from './dom.js';
import { onLive } from './live.js';
import { baseName } from './text.js';

/** The form of names that programs give to sessions. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** @type {Record<string, string>} */
const ENTRY_POINTS = { cli: 'Command line', mcp: 'MCP', run: 'Run', serve: 'This page', library: 'Library' };

/** A session that makes many calls is loaded again so often. */
const RELOAD_MS = 500;

/** Sessions that were loaded or came as events. @type {Map<string, T.Session>} */
const known = new Map();
/** Sessions that are being loaded. @type {Set<string>} */
const loading = new Set();
/** Sessions that are to be loaded again. @type {Set<string>} */
const stale = new Set();
/** @type {Set<(detail: T.SessionDetail) => void>} */
const handlers = new Set();

/** Where a session comes from.
 * @param {T.Session} session */
export const entryPoint = ({ entry_point }) => ENTRY_POINTS[entry_point] ?? entry_point;

/** @param {T.Session} session */
export const sessionName = (session) =>
	(session.name && !UUID.test(session.name) ? session.name : session.title) || `${entryPoint(session)} · ${baseName(session.workspace)}`;

/** Remembers a session, and shows its name in the links to it.
 * @param {T.Session} session */
export function learnSession(session) {
	known.set(session.id, session);
	for (const anchor of document.querySelectorAll('a[data-session]'))
		if (anchor.getAttribute('data-session') === session.id) fill(anchor, raw(sessionName(session)));
}

/** @param {string} id */
export function sessionLink(id) {
	const session = known.get(id);
	if (!session && !loading.has(id)) loadSession(id);
	return h('a', { href: `#/session/${encodeURIComponent(id)}`, 'data-session': id }, raw(session ? sessionName(session) : id));
}

/** @param {string} id */
export async function loadSession(id) {
	loading.add(id);
	// A session that cannot be loaded keeps its id as its name.
	const detail = await api.session(id).catch(() => null);
	loading.delete(id);
	if (!detail) return;
	learnSession(detail.session);
	for (const handler of handlers) handler(detail);
}

const reload = batched(() => {
	for (const id of stale) loadSession(id);
	stale.clear();
}, RELOAD_MS);

/** Loads a session again soon, because something of it has changed that has no event.
 * @param {string} id */
export function reloadSession(id) {
	stale.add(id);
	reload();
}

/** Calls with each session that was loaded.
 * @param {(detail: T.SessionDetail) => void} handler @param {AbortSignal} signal */
export function onSession(handler, signal) {
	handlers.add(handler);
	signal.addEventListener('abort', () => handlers.delete(handler));
}

onLive(({ event, data }) => {
	if (event === 'session') return learnSession(data);
	const session = known.get(data?.session);
	// The first message of a run, or the only call of a session, is the session's title.
	const isTitle = event === 'message' ? data.message.role === 'user' && !session?.title : event === 'call' && (session?.calls ?? 0) <= 1;
	if (session && isTitle) reloadSession(session.id);
	return undefined;
});
