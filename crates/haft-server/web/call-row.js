// A call as a row of a list.
/** @import * as T from './types.js' */

import { h, link, raw } from './dom.js';
import { callTime, stateChip, timeOf } from './state.js';
import { plural } from './text.js';

const TEN_MINUTES = Math.log10(600_000);
/** @type {Record<string, string>} */
const ERRORS = {
	invalid_arguments: 'wrong arguments',
	file_not_found: 'no such file',
	target_not_found: 'text not found',
	invalid_path: 'wrong path',
	not_found: 'not found',
	timeout: 'timed out',
	io: 'input or output error',
};
/** Kinds that add nothing to the call's state. */
const UNSAID = ['permission_denied', 'execution_failed', 'interrupted'];

/** The kind of error in words; empty if the state already says it.
 * @param {string | null} kind */
export const errorWord = (kind) => (kind && !UNSAID.includes(kind) ? (ERRORS[kind] ?? kind.replaceAll('_', ' ')) : '');

/** @param {T.CallSummary} call @param {{depth?: number, during?: T.CallSummary | undefined, extra?: import('./dom.js').Child}} [how]
 * `during` is an earlier call that was still running when this one began */
export function callRow(call, { depth = 0, during, extra } = {}) {
	const bar = h('span.bar', { 'aria-hidden': 'true' });
	bar.style.inlineSize = `${Math.min(100, (100 * Math.log10(1 + call.duration_us / 1000)) / TEN_MINUTES)}%`;
	const error = errorWord(call.error_kind);
	const badges = [
		during && h('span.badge', { title: `Began while #${during.id} was running` }, `during #${during.id}`),
		call.change_count > 0 && h('span.badge', plural(call.change_count, 'change')),
		call.exit_code ? h('span.badge', `exit ${call.exit_code}`) : error && h('span.badge', raw(error)),
		call.denials > 0 && h('span.badge.warn', `${call.denials.toLocaleString('en')} blocked by sandbox`),
		call.undoes.length > 0 && h('span.badge', `undoes ${plural(call.undoes.length, 'call')}`),
	];
	const anchor = link(
		`#/call/${call.id}`,
		h('span.number', `#${call.id}`),
		' ',
		h('span.tool', raw(call.tool)),
		' ',
		h('span.about', raw(call.about)),
		' ',
		h('span.badges', badges.flatMap((badge) => (badge ? [badge, ' '] : []))),
	);
	if (depth) anchor.classList.add('inner');
	return h(
		'div.row.call-row',
		timeOf(call.started_at),
		stateChip(call),
		anchor,
		extra && h('span.extra', extra),
		h('span.took', callTime(call), bar),
	);
}
