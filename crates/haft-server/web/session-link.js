// Names of sessions, and links to them that show the name as soon as it is known.
/** @import * as T from './types.js' */

import * as api from './api.js';
import { fill, h, raw } from './dom.js';
import { onLive } from './live.js';
import { baseName } from './text.js';

/** The form of names that programs give to sessions. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** @type {Record<string, string>} */
const ENTRY_POINTS = { cli: 'Command line', mcp: 'MCP', run: 'Run', serve: 'This page', library: 'Library' };

/** Sessions that were loaded or came as events. @type {Map<string, T.Session>} */
const known = new Map();
/** Sessions that are being loaded. @type {Set<string>} */
const loading = new Set();

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
	if (!session && !loading.has(id)) load(id);
	return h('a', { href: `#/session/${encodeURIComponent(id)}`, 'data-session': id }, raw(session ? sessionName(session) : id));
}

/** @param {string} id */
async function load(id) {
	loading.add(id);
	// A session that cannot be loaded keeps its id as its name.
	const detail = await api.session(id).catch(() => null);
	loading.delete(id);
	if (detail) learnSession(detail.session);
}

onLive(({ event, data }) => event === 'session' && learnSession(data));
