// State of the whole page, and small elements that several views show.
/** @import * as T from './types.js' */

import { h, link, raw } from './dom.js';
import { recorded } from './recorded.js';
import { learnSession, sessionName } from './session-link.js';
import { duration, time } from './text.js';

/** The page that a view fills.
 * @typedef {object} Page
 * @property {HTMLElement} main
 * @property {AbortSignal} signal aborted when the view is left
 * @property {(title: string, ...more: import('./dom.js').Child[]) => HTMLElement} heading
 * @property {{move: (by: number) => void} | null} list the list that j and k move in; without one they move between `data-nav`
 * @property {Record<string, () => void>} keys
 * @property {URLSearchParams} query the part of the address after `?`
 * @property {(path: string, query?: Record<string, string | false>) => void} remember replaces the address, so that reloading
 *   or going back shows the same
 */

/** @type {T.Meta} */
let meta = { version: '', role: 'view', position: 0, workspace: '', now: Date.now(), providers: [] };
let clockOffset = 0;

/** @param {T.Meta} next */
export function setMeta(next) {
	meta = next;
	clockOffset = next.now - Date.now();
}

export const getMeta = () => meta;
/** @param {T.Role} role */
export const can = (role) => role === 'view' || meta.role === 'act' || meta.role === role;
export const serverNow = () => Date.now() + clockOffset;

/** @type {Record<string, [string, string]>} sign and word */
const STATES = {
	running: ['▶', 'running'],
	completed: ['✓', 'done'],
	failed: ['✕', 'failed'],
	denied: ['⊘', 'denied'],
	interrupted: ['■', 'stopped'],
};

/** @param {T.CallSummary} call */
export function stateChip(call) {
	const [sign, word] = call.undone_by ? ['↶', 'undone'] : (STATES[call.state] ?? ['?', call.state]);
	return h('span', { class: `state ${call.undone_by ? 'undone' : call.state}` }, h('span', { 'aria-hidden': 'true' }, sign), ' ', word);
}

/** How long a call took, or has run until now.
 * @param {T.CallSummary} call */
export function callTime(call) {
	if (call.state !== 'running') return h('span.time', duration(call.duration_us / 1000));
	return h('span.time', { 'data-since': call.started_at }, duration(Math.max(0, serverNow() - call.started_at)));
}

setInterval(() => {
	for (const element of document.querySelectorAll('[data-since]')) {
		const since = Number(element.getAttribute('data-since'));
		element.textContent = duration(Math.max(1000, serverNow() - since));
	}
}, 1000);

/** A time, shortened; the tooltip has all of it.
 * @param {number} ms */
export function timeOf(ms) {
	const then = new Date(ms);
	const clock = `${then.toLocaleTimeString('en-GB')}.${String(then.getMilliseconds()).padStart(3, '0')}`;
	const title = `${then.toLocaleDateString('en-GB', { dateStyle: 'full' })}, ${clock}`;
	return h('time', { datetime: then.toISOString(), title }, time(ms));
}

/** @param {number} call */
export const callLink = (call) => link(`#/call/${call}`, `#${call}`);

/** The heading of a view of a session, with the links to its other views.
 * @param {Page} page @param {T.Session} session @param {string} current @param {import('./dom.js').Child[]} more */
export function sessionHeading(page, session, current, ...more) {
	const id = encodeURIComponent(session.id);
	/** @type {[string, string, boolean][]} */
	const tabs = [
		['Timeline', `#/session/${id}`, true],
		['Chat', `#/chat/${id}`, session.has_run],
		['Files', `#/files/session/${id}`, true],
		['Replay', `#/replay/${id}`, true],
		['Undo', `#/undo/session/${id}`, recorded === null],
	];
	learnSession(session);
	page.heading(sessionName(session), ...more);
	const links = tabs
		.filter(([, , has]) => has)
		.map(([label, href]) => h('a', { href, 'aria-current': label === current && 'page' }, label));
	page.main.append(h('nav.tabs', { 'aria-label': 'Session' }, links));
}

/** A row of labelled values.
 * @param {[string, import('./dom.js').Child][]} facts */
export const factList = (facts) =>
	h(
		'dl.facts',
		facts.filter(([, value]) => value || value === 0).map(([label, value]) => h('div', h('dt', label), h('dd', value))),
	);

/** @param {unknown} value */
export const jsonText = (value) => (typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? ''));

/** @param {string} verdict @param {string} reason @param {string | null} rule */
export const decisionLine = (verdict, reason, rule) =>
	h(
		'p.decision',
		h('span', { class: `verdict ${verdict}` }, { allow: '✓ Allowed', ask: '? Ask', deny: '⊘ Denied' }[verdict] ?? verdict),
		': ',
		raw(reason),
		rule && [h('br'), h('span.note', 'Rule: '), raw(rule, 'code')],
	);

/** @param {unknown} error */
export const errorLine = (error) => h('p.error', { role: 'alert' }, errorText(error));

/** @param {unknown} error */
export const errorText = (error) => (error instanceof Error ? error.message : String(error));

/** What a call touches.
 * @param {string[]} list */
export const effectList = (list) =>
	list.length > 0 &&
	h(
		'ul.effects',
		list.slice(0, 200).map((effect) => h('li', raw(effect))),
		list.length > 200 && h('li', `and ${list.length - 200} more`),
	);
