// What waits for a person, and what runs, in all sessions.
/** @import * as T from './types.js' */
/** @import {Page} from './state.js' */

import * as api from './api.js';
import { add, batched, button, fill, h, raw, refill } from './dom.js';
import { callRow } from './call-row.js';
import { follow } from './live.js';
import { LiveOutput } from './live-output.js';
import { Output } from './output.js';
import { questionList } from './question-list.js';
import { learnSession, loadSession, onSession, reloadSession, sessionLink, sessionName } from './session-link.js';
import { callTime, can, errorText } from './state.js';

const OUTPUT_LINES = 12;
const RECENT = 12;
/** Only the end of the output is shown, so what a longer gap would have is not loaded. */
const MAX_GAP_BYTES = 32_768;

/** @typedef {{element: HTMLElement, output: Output, live: LiveOutput}} Running */

/** @param {Page} page */
export async function showNow(page) {
	const { main, signal } = page;
	page.heading('Now', notifyButton());
	const running = h('div.cards');
	const driven = h('div.rows-static');
	const recent = h('div.rows-static', { role: 'list', 'aria-label': 'Finished calls' });
	const summary = h('p.summary');
	/** Sessions whose runs may be driven. @type {Map<string, T.Session>} */
	const sessions = new Map();
	/** Those whose turn can be interrupted. @type {Set<string>} */
	const stoppable = new Set();
	/** A row stays while it says the same, with its button and what it was answered. @type {Map<string, {key: string, row: HTMLElement}>} */
	const conversations = new Map();
	/** @param {T.Session} session */
	const conversation = (session) => {
		const canStop = can('act') && stoppable.has(session.id);
		const key = JSON.stringify([sessionName(session), canStop]);
		const old = conversations.get(session.id);
		if (old?.key === key) return old.row;
		const row = conversationRow(session, canStop);
		conversations.set(session.id, { key, row });
		return row;
	};
	const waiting = questionList(page, '', () => {
		// Not batched, because a hidden card cannot take the focus, and a card that takes it must not move afterwards.
		arrangeQuestions();
		arrange();
	});
	const section = (/** @type {string} */ title, /** @type {HTMLElement} */ body) => h('section', h('h2', title), body);
	const sections = {
		waiting: section('Waiting for you', waiting.element),
		running: section('Running', running),
		driven: section('Active conversations', driven),
		answered: section('Answered', waiting.answered),
		recent: section('Recently finished', recent),
	};
	add(main, summary, sections.waiting, sections.running, sections.driven, sections.answered, sections.recent);

	/** @type {Map<number, Running>} */
	const runs = new Map();
	/** @type {T.CallSummary[]} */
	let done = [];

	const arrangeQuestions = () => {
		const count = waiting.count();
		const jump = (/** @type {string} */ text, /** @type {HTMLElement} */ to) =>
			button(text, () => to.scrollIntoView({ block: 'start' }), { class: 'small' });
		fill(
			summary,
			count > 0 && jump(`${count} waiting for you`, sections.waiting),
			' ',
			runs.size > 0 && jump(`${runs.size} running`, sections.running),
			count + runs.size === 0 && 'Nothing is waiting for you and nothing is running.',
		);
		sections.waiting.hidden = count === 0;
		sections.answered.hidden = waiting.answered.childElementCount === 0;
	};
	const arrange = batched(() => {
		arrangeQuestions();
		sections.running.hidden = runs.size === 0;
		sections.recent.hidden = done.length === 0;
		const open = [...sessions.values()].filter((session) => session.is_driven);
		sections.driven.hidden = open.length === 0;
		const rows = open.map(conversation);
		if (rows.length !== driven.childElementCount || rows.some((row, index) => row !== driven.children[index])) refill(driven, rows);
		refill(
			recent,
			done.map((call) => {
				const row = callRow(call, { extra: sessionLink(call.session) });
				row.setAttribute('role', 'listitem');
				row.setAttribute('data-nav', '');
				return row;
			}),
		);
	});

	/** @param {T.CallSummary} call */
	const showCall = (call) => {
		const old = runs.get(call.id);
		if (call.state !== 'running') {
			old?.element.remove();
			runs.delete(call.id);
			if (done.some(({ id }) => id === call.id)) done = done.map((other) => (other.id === call.id ? call : other));
			else done = [call, ...done].sort((a, b) => b.id - a.id).slice(0, RECENT);
			return;
		}
		if (old) return;
		const output = new Output(OUTPUT_LINES, 'Latest output');
		const element = runningCard(call, output);
		output.element.hidden = true;
		const live = new LiveOutput(call.id, output, signal, { from: call.output?.from, maxGapBytes: MAX_GAP_BYTES });
		const run = { element, output, live };
		runs.set(call.id, run);
		running.append(element);
		if (call.output) showOutput(call.id, call.output);
	};

	/** @param {number} call @param {T.LiveOutput} part */
	const showOutput = (call, part) => {
		const run = runs.get(call);
		if (!run) return;
		run.output.element.hidden = false;
		run.live.push(part);
	};

	let position = 0;
	const load = async () => {
		const now = await api.now(signal);
		// Loaded second, so that a call that ends meanwhile is in one of the two.
		const list = await api.calls({}, null, signal);
		position = now.position;
		sessions.clear();
		for (const session of now.sessions) {
			sessions.set(session.id, session);
			learnSession(session);
			if (session.is_driven) loadSession(session.id);
		}
		for (const { element } of runs.values()) element.remove();
		runs.clear();
		waiting.show();
		now.calls.forEach(showCall);
		done = list.calls.filter(({ state }) => state !== 'running').slice(0, RECENT);
		arrange();
	};
	page.keys.u = () => void (location.hash = '#/undo');
	onSession(({ session, run }) => {
		if (session.is_driven || sessions.has(session.id)) sessions.set(session.id, session);
		if (run?.can_interrupt) stoppable.add(session.id);
		else stoppable.delete(session.id);
		arrange();
	}, signal);
	await follow(signal, load, ({ event, id, data }) => {
		if (event === 'output') showOutput(data.call, data);
		if (id && id <= position) return;
		if (event === 'call') showCall(data);
		else if (event === 'session') sessions.set(data.id, data);
		else if (event === 'driver') {
			const session = sessions.get(data.session);
			if (session) sessions.set(data.session, { ...session, is_driven: data.is_driven });
			loadSession(data.session);
		} else if (event === 'message') {
			// With it a turn began or ended, and with the turn what can be stopped.
			if (sessions.get(data.session)?.is_driven && ['user', 'end'].includes(data.message.role)) reloadSession(data.session);
			return;
		} else return;
		arrange();
	});
}

/** @param {T.CallSummary} call @param {Output} output */
const runningCard = (call, output) =>
	h(
		'article.card.run',
		{ 'data-nav': true, 'aria-label': `${call.tool} is running` },
		h(
			'header',
			h(
				'h3',
				h('span.spinner', { 'aria-hidden': 'true' }),
				' ',
				h('a', { href: `#/call/${call.id}` }, raw(call.tool, 'tool'), ' ', raw(call.about, 'about')),
			),
			h('span.note', callTime(call)),
		),
		h('p.note', sessionLink(call.session), ' · ', raw(call.workspace)),
		output.element,
	);

/** @param {T.Session} session @param {boolean} canStop */
function conversationRow(session, canStop) {
	const status = h('p.error', { role: 'status' });
	const stop = button('Stop', async () => {
		stop.disabled = true;
		fill(status);
		try {
			await api.interrupt(session.id);
		} catch (error) {
			fill(status, errorText(error));
			stop.disabled = false;
		}
	});
	return h(
		'div',
		h(
			'div.row',
			{ 'data-nav': true },
			h('a', { href: `#/chat/${encodeURIComponent(session.id)}`, class: 'grow' }, raw(sessionName(session))),
			raw(session.workspace, 'note'),
			canStop && stop,
		),
		status,
	);
}

function notifyButton() {
	if (!('Notification' in globalThis) || Notification.permission !== 'default' || !can('approve')) return null;
	const ask = button(
		'Notify me of questions',
		async () => {
			await Notification.requestPermission();
			ask.remove();
		},
		{ class: 'small' },
	);
	return ask;
}
