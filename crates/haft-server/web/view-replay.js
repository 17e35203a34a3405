// A session step by step: the tree and the differences as they were after each call.
/** @import {Page} from './state.js' */

import * as api from './api.js';
import { CallList } from './call-list.js';
import { callRow } from './call-row.js';
import { add, button, debounced, fill, h } from './dom.js';
import { recorded } from './recorded.js';
import { errorLine, sessionHeading } from './state.js';
import { plural, time } from './text.js';
import { timelineSlider } from './timeline.js';
import { ChangeTree } from './tree.js';
import { changeLoader } from './view-call.js';

/** @param {Page} page @param {string} id @param {string} [from] a call to begin at */
export async function showReplay(page, id, from) {
	const { main, signal } = page;
	const { session } = await api.session(id, signal);
	sessionHeading(page, session, 'Replay');
	const timeline = timelineSlider('Call', 1, (at) => callAt(at));
	const slider = timeline.input;
	const label = h('span.note', { role: 'status' });
	const filter = h('input', { type: 'checkbox' });
	const row = h('div.rows-static');
	const own = h('div');
	const whole = h('div');
	add(
		main,
		h(
			'div.point',
			timeline.element,
			h(
				'div.bar-top',
				button('‹ Back', () => step(-1)),
				button('Next ›', () => step(1)),
				button('Next error', () => jump(1)),
				button('Previous error', () => jump(-1)),
				h('label.check', filter, 'Only calls that changed files'),
				label,
			),
		),
		row,
		own,
		whole,
	);

	let calls = new CallList({ session: id }, signal, () => {});
	let shown = new AbortController();
	/** The call at a step, counted from 1, the oldest. @param {number} at */
	const callAt = (at) => calls.at(calls.length - at);
	const load = async () => {
		calls = new CallList(
			{ session: id, changed: filter.checked },
			signal,
			() => (label.textContent = `Loading: ${plural(calls.length, 'call')}`),
		);
		await calls.ensure(Infinity);
		timeline.draw(calls.length);
		let start = 1;
		while (from && start < calls.length && (callAt(start)?.id ?? 0) < Number(from)) start++;
		go(start);
	};
	/** @param {number} at */
	const go = (at) => {
		const call = callAt(at);
		if (!call) return void (label.textContent = calls.length ? '' : 'There are no calls.');
		slider.value = String(at);
		timeline.point();
		label.textContent = `Call ${at} of ${calls.length}`;
		slider.setAttribute('aria-valuetext', `${at}: ${call.tool} ${call.about.slice(0, 100)}, ${time(call.started_at)}`);
		fill(row, callRow(call, { during: calls.during(calls.length - at) }));
		from = String(call.id);
		page.remember(`/replay/${encodeURIComponent(id)}/${call.id}`);
		draw();
		return undefined;
	};
	const draw = debounced(async () => {
		const call = callAt(Number(slider.value));
		if (!call) return;
		shown.abort();
		shown = new AbortController();
		const now = AbortSignal.any([shown.signal, signal]);
		try {
			let missing = 0;
			const options = { workspace: call.workspace, showCalls: true };
			const state = new ChangeTree(
				{
					...options,
					label: 'Changes up to and including this call',
					load: async (offset, path) => {
						const files = await api.files({ session: id, until: call.id, path }, offset, now);
						missing = files.missing ?? 0;
						return files.changes;
					},
				},
				now,
			);
			await state.reload();
			// An exported session may not have this call, and the others nevertheless.
			const detail = await api.call(call.id, now).catch(errorLine);
			const problem = detail instanceof HTMLElement ? detail : null;
			const step =
				detail instanceof HTMLElement
					? null
					: new ChangeTree({ ...options, showCalls: false, label: 'Changes of this call', load: changeLoader(detail, now) }, now);
			if (step && call.change_count) await step.reload();
			if (now.aborted) return;
			fill(own, h('h2', call.change_count ? 'This call changed' : 'This call changed no file'), problem, call.change_count > 0 && step?.element);
			fill(
				whole,
				h('h2', 'All changes up to and including this call'),
				h('p.note', 'Paths that the session did not change are not listed.'),
				missing > 0 && h('p.warn', `Not all changes of ${plural(missing, 'call')} are in the exported file, so paths may be missing.`),
				state.element,
			);
			step?.list.update();
			state.list.update();
		} catch (error) {
			if (!now.aborted) fill(whole, errorLine(error));
		}
	}, 120);
	/** @param {number} by */
	const step = (by) => go(Math.max(1, Math.min(calls.length, Number(slider.value) + by)));
	/** @param {number} by */
	const jump = (by) => {
		for (let at = Number(slider.value) + by; at >= 1 && at <= calls.length; at += by) {
			if (['failed', 'denied', 'interrupted'].includes(callAt(at)?.state ?? '')) return go(at);
		}
		label.textContent = 'No more errors in this direction.';
		return undefined;
	};
	slider.addEventListener('input', () => go(Number(slider.value)));
	filter.addEventListener('change', () => load().catch(() => {}));
	page.keys = {
		j: () => step(1),
		k: () => step(-1),
		ArrowRight: () => step(1),
		ArrowLeft: () => step(-1),
		e: () => jump(1),
		E: () => jump(-1),
	};
	if (!recorded) page.keys.u = () => void (location.hash = `#/undo/session/${encodeURIComponent(id)}`);
	await load();
}
