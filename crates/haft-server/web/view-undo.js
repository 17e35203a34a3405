// Undo and redo: the plan, its options, and the undo itself.
/** @import * as T from './types.js' */
/** @import {Page} from './state.js' */

import * as api from './api.js';
import { CallList } from './call-list.js';
import { callRow } from './call-row.js';
import { add, button, checkbox, debounced, fill, h, raw } from './dom.js';
import { onLive } from './live.js';
import { callLink, can, errorLine, getMeta, sessionHeading } from './state.js';
import { capitalised, plural, time } from './text.js';
import { timelineSlider } from './timeline.js';
import { ChangeTree, withText } from './tree.js';
import { workspacePicker } from './workspaces.js';

/** @param {Page} page @param {string} [kind] @param {string} [which] */
export async function showUndo(page, kind = 'workspace', which = getMeta().workspace) {
	const { main, signal } = page;
	const panel = h('div');
	const encoded = encodeURIComponent(which);
	if (kind === 'calls') {
		const calls = which.split(',').map(Number);
		const only = calls.length === 1 ? await api.call(calls[0] ?? 0, signal) : null;
		const isRedo = only !== null && only.summary.undoes.length > 0;
		page.heading(isRedo ? `Redo what #${which} undid` : only ? `Undo #${which}` : `Undo ${plural(calls.length, 'call')}`);
		main.append(panel);
		return showPlan(page, panel, { calls }, signal);
	}
	if (kind === 'redo') {
		page.heading('Redo the last undo');
		main.append(panel);
		return showPlan(page, panel, { redo: which }, signal);
	}
	const isSession = kind === 'session';
	if (isSession) {
		const { session } = await api.session(which, signal);
		sessionHeading(page, session, 'Undo');
	} else {
		page.heading('Undo');
		const redo = h('p.actions');
		add(
			main,
			workspacePicker(which, (workspace) => `#/undo/workspace/${encodeURIComponent(workspace)}`, signal),
			redo,
		);
		if (can('act')) {
			// The link is there only if it leads to something.
			api.undoPreview({ what: { redo: which }, except: [], merge: false, force: false }, signal).then(
				() => fill(redo, h('a', { href: `#/undo/redo/${encoded}` }, 'Redo the last undo here…')),
				() => {},
			);
		}
	}
	await pointInTime(page, panel, isSession, which);
}

/** The point in time to go back to, as a slider over the calls that changed something.
 * @param {Page} page @param {HTMLElement} panel @param {boolean} isSession @param {string} which */
async function pointInTime(page, panel, isSession, which) {
	const { main, signal } = page;
	const calls = new CallList({ ...(isSession ? { session: which } : { workspace: which }), changed: true }, signal, () => {});
	const timeline = timelineSlider('Point in time', 0, (step) => calls.at(calls.length - step));
	const slider = timeline.input;
	const label = h('p.note', { role: 'status' });
	const more = button(
		'Go further back',
		async () => {
			await calls.ensure(calls.length + api.PAGE);
			show();
		},
		{ class: 'small' },
	);
	const point = h('div.point', h('div.ends', h('span', 'earlier'), h('span', 'now')), timeline.element, label, more);
	add(main, h('p', 'Drag back to a point in time to preview an undo. Nothing changes until you confirm.'), point, panel);
	await calls.ensure(1);
	if (calls.length === 0) return fill(point, h('p.empty', 'No call changed a file here.'));
	/** How many of the newest calls are to be undone. */
	const back = () => Number(slider.max) - Number(slider.value);
	const show = (added = 0) => {
		const behind = slider.max === '' ? 0 : back() + added;
		timeline.draw(calls.length);
		slider.value = String(calls.length - behind);
		timeline.point();
		more.hidden = calls.isComplete;
	};
	show();
	const describe = () => {
		const last = calls.at(back());
		const text =
			back() === 0
				? 'Now: nothing would be undone.'
				: last
					? `Right after #${last.id} ${last.tool} ${last.about.slice(0, 100)}, ${time(last.started_at)}`
					: `Before ${calls.isComplete ? 'the first call' : 'the calls that are loaded'}`;
		fill(label, raw(text));
		slider.setAttribute('aria-valuetext', text.slice(0, 200));
	};
	let shown = new AbortController();
	const preview = debounced(() => {
		shown = new AbortController();
		const count = back();
		if (count === 0) return;
		const oldest = /** @type {T.CallSummary} */ (calls.at(count - 1));
		const what = { from: oldest.id, ...(isSession && { session: which }) };
		showPlan(page, panel, what, AbortSignal.any([shown.signal, signal]));
	}, 300);
	slider.addEventListener('input', () => {
		// The old button must not perform the plan of another point.
		shown.abort();
		panel.replaceChildren();
		describe();
		preview();
	});
	describe();
	onLive(({ event, data }) => {
		// The chosen call stays chosen. A plan that is shown is checked again when it is performed.
		if (event === 'call' && calls.apply(data)) show(back() > 0 ? 1 : 0);
	}, signal);
	return undefined;
}

/** Shows the plan, and again after each choice.
 * @param {Page} page @param {HTMLElement} panel @param {T.UndoWhat} what @param {AbortSignal} signal */
async function showPlan(page, panel, what, signal) {
	/** @type {Set<string>} */
	const excluded = new Set();
	/** @type {T.UndoPlan | null} */
	let plan = null;
	/** How many paths there are, whether they are selected or not. */
	let all = 0;
	let asked = 0;
	const isRedo = () => plan !== null && plan.calls.length > 0 && plan.calls.every(({ undoes }) => undoes.length > 0);
	const facts = h('div.plan', h('p.note', 'Working out what would change…'));
	const paths = h('div');
	const message = h('div', { role: 'status' });
	const merge = checkbox('Merge with later changes', () => {
		// The tree is made for the plan of all paths.
		excluded.clear();
		update();
	});
	const force = checkbox('Overwrite later changes', () => update());
	const perform = button('Undo', () => act(), { class: 'primary big', disabled: true });
	const options = h('div.bar-top', merge.element, force.element, perform);
	options.hidden = true;
	fill(panel, facts, options, message, paths);

	/** @returns {T.UndoRequest} */
	const request = () => ({
		what,
		except: [...excluded],
		merge: merge.input.checked,
		force: force.input.checked,
	});
	const update = debounced(async () => {
		perform.disabled = true;
		const now = ++asked;
		if (excluded.size > 0 && excluded.size >= all) return fill(facts, h('p.note', 'No path is selected.'));
		try {
			const next = await api.undoPreview(request(), signal);
			if (now === asked) show(next);
		} catch (error) {
			if (signal.aborted || now !== asked) return undefined;
			options.hidden = true;
			fill(facts, errorLine(error));
		}
		return undefined;
	}, 50);
	/** @param {T.UndoPlan} next */
	const show = (next) => {
		plan = next;
		if (next.changes.total === 0 && next.conflicts.length === 0 && excluded.size === 0) {
			options.hidden = true;
			// A denied call did nothing, so it does not matter why it cannot be undone.
			const blocked = next.blocked.filter(({ call }) => next.calls.some(({ id, state }) => id === call && state !== 'denied'));
			return fill(facts, blockedList(blocked), h('p.empty', 'There is nothing to change.'));
		}
		options.hidden = !can('act');
		fill(facts, planFacts(next));
		const stuck = next.conflicts.some(({ blocks }) => blocks) || (next.conflicts.length > 0 && !force.input.checked);
		perform.disabled = stuck || next.changes.total === 0;
		perform.textContent = `${isRedo() ? 'Redo' : 'Undo'} (${plural(next.changes.total, 'change')})`;
		force.element.hidden = next.conflicts.length === 0 && !force.input.checked;
		merge.element.hidden = next.conflicts.length === 0 && next.merged.length === 0 && !merge.input.checked;
		// The tree keeps showing the whole plan, so that excluded paths can be selected again.
		if (excluded.size === 0) {
			all = next.changes.total;
			const merged = new Map(next.merged.map(({ path, changes }) => [path, changes]));
			const changes = next.changes.changes.map((change) => ({ ...change, merged: merged.get(change.path) }));
			const tree = new ChangeTree(
				{
					label: 'What would change',
					workspace: next.calls[0]?.workspace ?? getMeta().workspace,
					load: async (_, text) => withText({ ...next.changes, changes, next: null }, text),
					left: can('act') ? excluded : undefined,
					onSelect: update,
				},
				signal,
			);
			fill(
				paths,
				h('h2', 'What would change'),
				next.changes.next !== null &&
					h(
						'p.note',
						`The first ${next.changes.changes.length} of ${next.changes.total} changes. The others are undone, too.`,
					),
				tree.element,
			);
			page.list = tree.list;
			tree.reload();
		}
		return undefined;
	};
	const act = async () => {
		if (!plan) return;
		perform.disabled = true;
		fill(message);
		try {
			const done = await api.undo({ ...request(), plan: plan.plan });
			fill(
				panel,
				h(
					'div.card',
					{ role: 'status', tabindex: -1 },
					h('p', h('span.state.completed', '✓ done'), ' ', raw(done.message), ' ', callLink(done.call)),
					h('p.actions', h('a', { href: `#/undo/calls/${done.call}` }, isRedo() ? 'Undo…' : 'Redo…')),
				),
			);
			/** @type {HTMLElement} */ (panel.firstChild).focus();
		} catch (error) {
			if (error instanceof api.ApiError && error.status === 409 && error.details) {
				excluded.clear();
				update();
				fill(message, h('p.warn', 'Something changed since this plan was shown. This is the new plan; look at it again.'));
			} else {
				fill(message, errorLine(error));
				perform.disabled = false;
			}
		}
	};
	update();
}

/** A list of things in the plan that a person has to know.
 * @param {string} title @param {import('./dom.js').Child[][]} items */
const list = (title, items, kind = 'warn') =>
	items.length > 0 &&
	h(
		'div',
		{ class: kind },
		h('h2', title),
		h(
			'ul',
			items.slice(0, 100).map((item) => h('li', item)),
			items.length > 100 && h('li', `and ${items.length - 100} more`),
		),
	);

/** @param {T.BlockedCall[]} blocked */
const blockedList = (blocked) =>
	list(
		'Cannot be undone',
		blocked.map(({ call, why }) => [callLink(call), ' ', raw(capitalised(why))]),
	);

/** @param {T.UndoPlan} plan */
function planFacts(plan) {
	return [
		list(
			'Changed since',
			plan.conflicts.map(({ path, found, changed_by, blocks }) => [
				raw(path, 'path'),
				changed_by ? [', changed by ', callLink(changed_by)] : [': ', raw(found)],
				blocks && ' It cannot be overwritten.',
			]),
		),
		blockedList(plan.blocked),
		list(
			'Comes back only in part',
			plan.partly.map(({ call, why }) => [callLink(call), ' ', raw(capitalised(why))]),
		),
		list(
			'Merged with later changes',
			plan.merged.map(({ path }) => [raw(path, 'path')]),
			'info',
		),
		plan.left_out > 0 && h('p.note', `${plural(plan.left_out, 'other change')} of these calls would be kept.`),
		h(
			'details',
			{ open: plan.calls.length <= 5 },
			h('summary', plural(plan.calls.length, 'call')),
			h(
				'div.rows-static',
				{ role: 'list', 'aria-label': 'Calls' },
				plan.calls.slice(0, 200).map((call) => {
					const row = callRow(call);
					row.setAttribute('role', 'listitem');
					return row;
				}),
			),
		),
	];
}
