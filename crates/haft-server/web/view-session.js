// The timeline of a session: its calls in order, with those of its subagents.
/** @import * as T from './types.js' */
/** @import {Page} from './state.js' */

import * as api from './api.js';
import { CallList } from './call-list.js';
import { callRow } from './call-row.js';
import { add, batched, button, checkbox, choice, debounced, h, raw, refill, select } from './dom.js';
import { WindowedList } from './list.js';
import { follow } from './live.js';
import { questionList } from './question-list.js';
import { recorded } from './recorded.js';
import { entryPoint, learnSession, sessionLink, sessionName } from './session-link.js';
import { errorText, factList, sessionHeading, timeOf } from './state.js';
import { plural } from './text.js';

const ORDER_KEY = 'haft-order';

/** @typedef {{call: T.CallSummary | undefined, during: T.CallSummary | undefined, depth: number, agents: T.Agent[]}} Row */

/** @param {Page} page @param {string} id */
export async function showSession(page, id) {
	const { main, signal } = page;
	let detail = await api.session(id, signal);
	sessionHeading(
		page,
		detail.session,
		'Timeline',
		h('span.actions', !recorded && button('Export', (event) => save(event, detail.session), { class: 'small' })),
	);
	const facts = h('div');
	const search = h('input', { type: 'search', placeholder: 'Search in arguments, results and paths', 'aria-label': 'Search calls' });
	const [failed, changed, oldest] = [
		checkbox('Failed or denied', () => again()),
		checkbox('With changes', () => again()),
		checkbox('Oldest first', () => (choice(ORDER_KEY, oldest.input.checked ? 'oldest' : 'newest'), again())),
	];
	const tool = select([['', 'All tools']], { 'aria-label': 'Tool', onchange: () => again() });
	const status = h('p.note', { role: 'status' });
	const { query } = page;
	search.value = query.get('q') ?? '';
	failed.input.checked = query.has('failed');
	changed.input.checked = query.has('changed');
	const toolName = query.get('tool') ?? '';
	if (toolName) tool.append(h('option', { value: toolName, selected: true }, toolName));
	const isEnded = recorded !== null || (detail.session.has_run && !detail.session.is_driven);
	oldest.input.checked = (choice(ORDER_KEY) || (isEnded ? 'oldest' : 'newest')) === 'oldest';
	const waiting = questionList(page, id, () => list.update());
	const filters = h('div.bar-top', { role: 'search' }, search, tool, failed.element, changed.element, oldest.element);
	const isCut = recorded?.isCut && h('p.warn', 'The exported file does not have all of the session, because it would be too large.');
	add(main, waiting.element, waiting.answered, isCut, facts, filters, status);

	let calls = new CallList({ session: id }, signal, () => {});
	/** Calls of subagents that are unfolded. @type {Map<string, CallList>} */
	const open = new Map();
	/** @type {Row[]} */
	let unfolded = [];
	const isFiltered = () => Boolean(calls.filter.text || calls.filter.tool || calls.filter.failed || calls.filter.changed);
	const count = () =>
		calls.isComplete || isFiltered() ? calls.length + (calls.isComplete ? 0 : 1) : Math.max(calls.length + 1, detail.session.calls);
	const agentsOf = (/** @type {T.CallSummary | undefined} */ call) => detail.agents.filter((agent) => call && agent.call === call.id);

	/** Collects all rows, if calls of subagents are among them. */
	const unfold = () => {
		unfolded = [];
		if (open.size === 0) return;
		for (let index = 0; index < count(); index++) {
			const call = calls.at(index);
			const agents = agentsOf(call);
			unfolded.push({ call, during: calls.during(index), depth: 0, agents });
			for (const { session } of agents) {
				const inner = open.get(session.id);
				for (let inside = (inner?.length ?? 0) - 1; inside >= 0; inside--)
					unfolded.push({ call: inner?.at(inside), during: inner?.during(inside), depth: 1, agents: [] });
			}
		}
	};
	const draw = batched(() => {
		unfold();
		const none = calls.isComplete && calls.length === 0;
		status.textContent = none
			? isFiltered()
				? 'No call matches.'
				: 'No calls yet.'
			: isFiltered() && calls.isComplete
				? `${plural(calls.length, 'call')} found.`
				: '';
		list.update();
	});
	/** @type {WindowedList<T.CallSummary>} */
	const list = new WindowedList(
		main,
		{
			label: 'Calls',
			count: () => (open.size ? unfolded.length : count()),
			item: (index) => (open.size ? unfolded[index]?.call : calls.at(index)),
			build: (call, index) => {
				if (![...tool.options].some(({ value }) => value === call.tool)) tool.append(h('option', { value: call.tool }, call.tool));
				const { during, depth, agents } = open.size
					? /** @type {Row} */ (unfolded[index])
					: { during: calls.during(index), depth: 0, agents: agentsOf(call) };
				return callRow(call, { depth, during, extra: agents.length > 0 && agents.map((agent) => fold(agent)) });
			},
			need: (last) => calls.ensure(last + 20).catch(() => {}),
		},
		signal,
	);
	page.list = list;
	main.append(list.element);

	/** The button that unfolds a subagent. @param {T.Agent} agent */
	const fold = (agent) =>
		h(
			'button',
			{
				type: 'button',
				class: 'small',
				title: agent.description,
				'aria-expanded': String(open.has(agent.session.id)),
				onclick: async () => {
					if (!open.delete(agent.session.id)) {
						const inner = new CallList({ session: agent.session.id }, signal, draw);
						open.set(agent.session.id, inner);
						await inner.ensure(Infinity);
					}
					list.redraw();
					draw();
				},
			},
			open.has(agent.session.id) ? '▾ ' : '▸ ',
			raw(agent.kind),
			`, ${plural(agent.session.calls, 'call')}`,
		);

	const showFacts = () => {
		const { session, run, agents } = detail;
		for (const agent of agents) learnSession(agent.session);
		const loose = agents.filter(({ call }) => call === null);
		refill(
			facts,
			factList([
				[
					'Folder',
					recorded
						? raw(session.workspace)
						: h('a', { href: `#/files/workspace/${encodeURIComponent(session.workspace)}` }, raw(session.workspace)),
				],
				['Started', timeOf(session.started_at)],
				['From', !session.parent && raw(entryPoint(session))],
				['Calls', session.calls.toLocaleString('en')],
				['Part of', session.parent && sessionLink(session.parent)],
				['Model', run && raw(`${run.provider}: ${run.model}`)],
				['Turns', run?.turns],
				['Tokens', run && `${run.input_tokens.toLocaleString('en')} in, ${run.output_tokens.toLocaleString('en')} out`],
				['Cost', run && (run.cost_usd === null ? 'not known' : `$${run.cost_usd.toFixed(run.cost_usd < 1 ? 4 : 2)}`)],
				['State', session.is_driven && h('span.state.running', run?.in_turn ? '▶ running' : '▶ open')],
				['Stopped', run?.stopped && raw(run.stopped)],
				['Subagents', loose.length > 0 && loose.map(({ session: inner, kind }) => [sessionLink(inner.id), ' ', raw(`(${kind})`), ' '])],
			]),
		);
	};
	const refresh = debounced(async () => {
		const next = await api.session(id, signal).catch(() => null);
		if (!next) return;
		const isNew = next.agents.length !== detail.agents.length;
		detail = next;
		showFacts();
		if (isNew) list.redraw();
		draw();
	}, 700);
	const restart = async () => {
		page.remember(`/session/${encodeURIComponent(id)}`, {
			q: search.value.trim(),
			tool: tool.value,
			failed: failed.input.checked && '1',
			changed: changed.input.checked && '1',
		});
		calls = new CallList(
			{ session: id, text: search.value.trim(), tool: tool.value, failed: failed.input.checked, changed: changed.input.checked },
			signal,
			draw,
			oldest.input.checked,
		);
		list.redraw();
		await calls.ensure(1);
		draw();
	};
	const again = () => restart().catch((error) => (status.textContent = errorText(error)));
	search.addEventListener(
		'input',
		debounced(() => again()),
	);
	if (!recorded) page.keys.u = () => void (location.hash = `#/undo/session/${encodeURIComponent(id)}`);
	showFacts();
	waiting.show();
	await follow(signal, restart, ({ event, data }) => {
		if (event === 'call') {
			for (const inner of open.values()) inner.apply(data);
			if (data.session === id) {
				if (data.state === 'running' && calls.apply(data)) {
					detail.session = { ...detail.session, calls: Math.max(detail.session.calls, calls.length) };
					if (!oldest.input.checked) list.added(1);
				} else calls.apply(data);
				refresh();
			}
			draw();
		} else if (['message', 'driver', 'session'].includes(event) && [data.session, data.id, data.parent].includes(id)) refresh();
	});
}

/** @param {MouseEvent} event @param {T.Session} session */
async function save(event, session) {
	const target = /** @type {HTMLButtonElement} */ (event.currentTarget);
	target.disabled = true;
	target.textContent = 'Exporting…';
	await api.saveExport(session.id, `${sessionName(session)} ${new Date(session.started_at).toISOString().slice(0, 10)}`).then(
		() => (target.textContent = 'Export'),
		(error) => (target.textContent = errorText(error)),
	);
	target.disabled = false;
}
