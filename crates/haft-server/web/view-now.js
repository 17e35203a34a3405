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
import { learnSession, onSession, sessionLink, sessionName } from './session-link.js';
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
	const waiting = questionList(page, '', () => {
		// At once, because a hidden card cannot take the focus, and one that takes it must not move afterwards.
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
		refill(driven, open.map(conversationRow));
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
		// Afterwards, so that a call that ends meanwhile is in one of the two.
		const list = await api.calls({}, null, signal);
		position = now.position;
		sessions.clear();
		for (const session of now.sessions) {
			sessions.set(session.id, session);
			learnSession(session);
		}
		for (const { element } of runs.values()) element.remove();
		runs.clear();
		waiting.show();
		now.calls.forEach(showCall);
		done = list.calls.filter(({ state }) => state !== 'running').slice(0, RECENT);
		arrange();
	};
	page.keys.u = () => void (location.hash = '#/undo');
	onSession(({ session }) => {
		if (sessions.has(session.id)) sessions.set(session.id, session);
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
			else if (data.is_driven)
				api.session(data.session, signal).then(
					(detail) => (sessions.set(data.session, detail.session), arrange()),
					() => {},
				);
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

/** @param {T.Session} session */
const conversationRow = (session) =>
	h(
		'div.row',
		{ 'data-nav': true },
		h('a', { href: `#/chat/${encodeURIComponent(session.id)}`, class: 'grow' }, raw(sessionName(session))),
		raw(session.workspace, 'note'),
		can('act') &&
			button('Stop', async (event) => {
				const target = /** @type {HTMLButtonElement} */ (event.currentTarget);
				target.disabled = true;
				await api.interrupt(session.id).catch((error) => (target.title = errorText(error)));
			}),
	);

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
