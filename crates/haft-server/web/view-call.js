// One call: its arguments, the decision about it, and what it did.
/** @import * as T from './types.js' */
/** @import {Page} from './state.js' */

import * as api from './api.js';
import { errorWord } from './call-row.js';
import { button, fill, h, link, raw } from './dom.js';
import { exactText } from './exact.js';
import { follow } from './live.js';
import { LiveOutput } from './live-output.js';
import { neighbours } from './neighbours.js';
import { endOf, Output, outputOf } from './output.js';
import { mainArgument } from './questions.js';
import { recorded } from './recorded.js';
import { sessionLink } from './session-link.js';
import { callLink, callTime, can, decisionLine, effectList, factList, jsonText, stateChip, timeOf } from './state.js';
import { capitalised, plural } from './text.js';
import { ChangeTree } from './tree.js';

const LIVE_LINES = 5_000;
/** Longer arguments are folded where the changes show the same. */
const MAX_UNFOLDED_LINES = 10;

/** @param {Page} page @param {string} part */
export async function showCall(page, part) {
	const { main, signal } = page;
	const id = Number(part);
	if (!Number.isInteger(id)) throw new Error('A call has a number.');
	let call = await api.call(id, signal);
	const actions = h('span');
	page.heading(`${call.summary.tool} #${id}`, actions);
	const others = h('span.others');
	main.append(
		h(
			'nav.crumbs',
			{ 'aria-label': 'Place' },
			!recorded && [link('#/sessions', 'Sessions'), ' › '],
			sessionLink(call.summary.session),
			others,
		),
	);
	const body = h('div');
	main.append(body);
	const output = new Output(LIVE_LINES, 'Output');
	output.element.classList.add('live');
	const live = new LiveOutput(id, output, signal);
	let drawing = new AbortController();
	const draw = () => {
		drawing.abort();
		drawing = new AbortController();
		const undo = undoLink(call.summary);
		fill(actions, undo);
		if (undo) page.keys.u = () => undo.click();
		else delete page.keys.u;
		fill(body, content(page, call, output, AbortSignal.any([drawing.signal, signal])));
	};
	const load = async () => {
		call = await api.call(id, signal);
		draw();
		if (call.summary.state === 'running' && !recorded) await live.catchUp();
	};
	neighbours(call.summary, signal).then(
		({ previous, next }) => {
			const go = (/** @type {T.CallSummary} */ other, /** @type {string} */ key, /** @type {string} */ label) => {
				page.keys[key] = () => void (location.hash = `#/call/${other.id}`);
				return h('a', { href: `#/call/${other.id}`, title: `${other.tool} ${other.about.slice(0, 100)}` }, label);
			};
			fill(others, previous && go(previous, '[', `‹ Previous #${previous.id}`), ' ', next && go(next, ']', `Next #${next.id} ›`));
		},
		() => {},
	);
	await follow(signal, load, ({ event, data }) => {
		if (event === 'call' && data.id === id) load().catch(() => {});
		else if (event === 'output' && data.call === id) live.push(data);
	});
}

/** @param {Page} page @param {T.Call} call @param {Output} output @param {AbortSignal} signal */
function content(page, call, output, signal) {
	const { summary } = call;
	const isRunning = summary.state === 'running';
	const isDenied = summary.state === 'denied';
	const hasChanges = call.changes.total > 0;
	// Whether a call can be undone is not known while it runs, and does not matter if it did not run.
	const isOver = !isRunning && (!isDenied || hasChanges);
	return [
		factList([
			['State', stateChip(summary)],
			[isRunning ? 'Running for' : 'Took', callTime(summary)],
			['Exit code', summary.exit_code],
			['Error', errorWord(summary.error_kind) && raw(errorWord(summary.error_kind))],
			['Started', timeOf(summary.started_at)],
			['Folder', raw(summary.workspace)],
			['Undone by', summary.undone_by && callLink(summary.undone_by)],
			['Undoes', summary.undoes.length > 0 && summary.undoes.slice(0, 50).map((other) => [callLink(other), ' '])],
			['Subagents', call.agents.length > 0 && call.agents.map((agent) => [sessionLink(agent), ' '])],
			['Can be undone', isOver && { yes: 'yes', partly: '~ partly', no: '⊘ no' }[summary.reversible]],
			['Sandbox', call.enforcement && raw(call.enforcement)],
		]),
		isDenied && !hasChanges && h('p', 'It did not run.'),
		isOver && call.irreversible_why && h('p.warn', raw(capitalised(call.irreversible_why))),
		call.runs_on_build.length > 0 &&
			h(
				'p.warn',
				'It changed files that run when the project is built: ',
				call.runs_on_build.map((path) => [raw(path, 'code'), ' ']),
			),
		hasChanges && section('Changes', changes(page, call, signal)),
		section('Arguments', args(call.input, hasChanges), call.input_note && h('p.note', raw(call.input_note))),
		call.decision && section('Decision', decision(call, call.decision)),
		call.denials.length > 0 &&
			section(
				'Blocked by sandbox',
				h(
					'ul',
					call.denials.map(({ what, remedy }) =>
						h('li', raw(what), remedy && [h('br'), h('span.note', 'To allow it: '), raw(remedy, 'code')]),
					),
				),
			),
		isRunning && section('Output', output.element),
		call.error && call.error !== call.result && section('Error', outputOf(call.error, 'Error', isCommand(call))),
		call.result !== null &&
			section(
				'Result as the agent saw it',
				// Only the output of commands has colours. Why a command failed is at the end of its output.
				(isCommand(call) && summary.state === 'failed' ? endOf : outputOf)(call.result, 'Result', isCommand(call)),
				call.result_is_cut && h('p.note', 'The rest of the result is not shown.'),
				call.full_output && !recorded && fullOutput(summary.id, signal),
			),
	];
}

/** @param {T.Call} call @param {T.Decision} decision */
function decision(call, { verdict, reason, rule }) {
	const command = `runs ${mainArgument(call).text}`;
	return [
		decisionLine(verdict, reason, rule),
		rule && !recorded && h('p.note', link(`#/rules/${encodeURIComponent(call.summary.workspace)}`, 'All rules')),
		effectList(call.effects.filter((effect) => effect !== command)),
	];
}

/** @param {T.CallSummary} call */
function undoLink(call) {
	if (!can('act') || call.state === 'running' || (!call.change_count && !call.undoes.length)) return null;
	const label = call.undone_by ? 'Redo…' : call.undoes.length ? 'Redo what it undid…' : 'Undo…';
	return h('a.button', { href: `#/undo/calls/${call.undone_by ?? call.id}` }, label);
}

/** @param {T.Call} call */
const isCommand = ({ summary, effects }) => summary.exit_code !== null || effects.some((effect) => /^runs /i.test(effect));

/** @param {string} title @param {import('./dom.js').Child[]} children */
const section = (title, ...children) => h('section', h('h2', title), children);

/** @param {unknown} input @param {boolean} isFolded whether long ones are folded */
function args(input, isFolded) {
	if (input === null || typeof input !== 'object' || Array.isArray(input)) return exactText(jsonText(input), 'Arguments');
	return h(
		'dl.args',
		Object.entries(input).map(([name, value]) => {
			const text = jsonText(value);
			const lines = text.split('\n').length;
			const box = text.length > 200 || lines > 1 ? exactText(text, name) : raw(text, 'code');
			const isLong = isFolded && lines > MAX_UNFOLDED_LINES;
			return h('div', h('dt', raw(name)), h('dd', isLong ? h('details', h('summary', plural(lines, 'line')), box) : box));
		}),
	);
}

/** Loads the changes of a call in parts; for most calls, all of them came with the call.
 * @param {T.Call} call @param {AbortSignal} signal @returns {(offset: number, text: string) => Promise<T.ChangeList>} */
export const changeLoader = (call, signal) => async (offset, text) =>
	text || call.changes.next !== null ? api.changes(call.summary.id, offset, text, signal) : call.changes;

/** @param {Page} page @param {T.Call} call @param {AbortSignal} signal */
function changes(page, call, signal) {
	const tree = new ChangeTree({ label: 'Changed paths', workspace: call.summary.workspace, load: changeLoader(call, signal) }, signal);
	tree.reload();
	page.list = tree.list;
	return tree.element;
}

/** A button for the whole output, of which the agent saw only a part.
 * @param {number} id @param {AbortSignal} signal */
function fullOutput(id, signal) {
	let at = 0;
	const output = new Output(Infinity, 'Whole output');
	const more = button(
		'Show the whole output',
		async () => {
			const found = await api.output(id, at, signal).catch(() => null);
			if (!found || found.next <= at) return more.remove();
			if (at === 0) more.before(output.element);
			at = found.next;
			more.textContent = 'Show more of the output';
			return output.push(found.text);
		},
		{ class: 'small' },
	);
	return h('div', more);
}
