// The list of sessions.
/** @import * as T from './types.js' */
/** @import {Page} from './state.js' */

import * as api from './api.js';
import { add, debounced, h, raw } from './dom.js';
import { WindowedList } from './list.js';
import { follow } from './live.js';
import { mainArgument, onQuestions, openQuestions, questionTitle } from './questions.js';
import { entryPoint, onSession, reloadSession, sessionName } from './session-link.js';
import { timeOf } from './state.js';
import { plural } from './text.js';

/** @param {Page} page */
export async function showSessions(page) {
	const { main, signal } = page;
	page.heading('Sessions');
	const search = h('input', { type: 'search', placeholder: 'Search calls, messages and names', 'aria-label': 'Search sessions' });
	search.value = page.query.get('q') ?? '';
	const status = h('p.note', { role: 'status' });
	/** @type {T.Session[]} */
	let sessions = [];
	/** @type {string | null} */
	let next = null;
	let isBusy = false;
	/** Sessions by their running calls. @type {Map<number, string>} */
	const running = new Map();
	/** @param {T.Session} session */
	const isRunning = (session) => session.is_driven || [...running.values()].includes(session.id);

	const list = new WindowedList(
		main,
		{
			label: 'Sessions',
			count: () => sessions.length,
			item: (index) => sessions[index],
			build: (session) => row(session, isRunning(session)),
			need: (last) => last >= sessions.length - 20 && next !== null && more(),
		},
		signal,
	);
	page.list = list;
	add(main, h('div.bar-top', search), status, list.element);

	const more = async (fresh = false) => {
		if (isBusy && !fresh) return;
		isBusy = true;
		const q = search.value.trim();
		page.remember('/sessions', { q });
		try {
			const found = await api.sessions({ q, before: fresh ? null : next }, signal);
			if (q !== search.value.trim()) return;
			const known = new Set(fresh ? [] : sessions.map(({ id }) => id));
			sessions = [...(fresh ? [] : sessions), ...found.sessions.filter(({ id }) => !known.has(id))];
			next = found.next;
			status.textContent = sessions.length
				? ''
				: q
					? 'No session matches.'
					: 'There are no sessions yet. Start one in Chat or in a terminal.';
			list.update();
		} finally {
			isBusy = false;
		}
	};
	search.addEventListener(
		'input',
		debounced(() => more(true).catch(() => {})),
	);
	onQuestions(() => list.redraw(), signal);
	/** Shows a session again, with what has changed. @param {string} id @param {Partial<T.Session>} fields */
	const change = (id, fields) => {
		sessions = sessions.map((session) => (session.id === id ? { ...session, ...fields } : session));
		list.update();
	};
	onSession(({ session }) => change(session.id, session), signal);
	const load = async () => {
		const { calls } = await api.now(signal);
		running.clear();
		for (const call of calls) running.set(call.id, call.session);
		await more(true);
	};
	await follow(signal, load, ({ event, data }) => {
		if (event === 'driver') change(data.session, { is_driven: data.is_driven });
		else if (event === 'call') {
			if (data.state === 'running') running.set(data.id, data.session);
			else running.delete(data.id);
			change(data.session, {});
			if (sessions.some(({ id }) => id === data.session)) reloadSession(data.session);
		} else if (event === 'message' && data.message.role === 'user') {
			if (sessions.some(({ id, title }) => id === data.session && !title)) reloadSession(data.session);
		} else if (event === 'session' && !search.value.trim()) {
			if (sessions.some(({ id }) => id === data.id)) return change(data.id, data);
			sessions = [data, ...sessions];
			status.textContent = '';
			list.added(1);
		}
		return undefined;
	});
}

/** @param {T.Session} session @param {boolean} isRunning */
function row(session, isRunning) {
	const [question] = openQuestions(session.id);
	return h(
		'div.row.session-row',
		h(
			'a',
			{ href: `#/session/${encodeURIComponent(session.id)}` },
			h('span.name', raw(sessionName(session))),
			h('span.note', raw(question ? about(question) : session.workspace)),
		),
		h(
			'span.badges',
			question
				? h('span.state.interrupted', '? needs an answer')
				: isRunning && h('span.state.running', '▶ running'),
			h('span.badge', session.parent ? 'Subagent' : raw(entryPoint(session))),
			h('span.badge', plural(session.calls, 'call')),
		),
		timeOf(session.started_at),
	);
}

/** What a question is about, on one line.
 * @param {T.Question} question */
const about = (question) => (question.body.kind === 'permission' && mainArgument(question.body).text) || questionTitle(question);
