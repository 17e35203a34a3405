// Differences between files: unified or side by side, images as images.
/** @import * as T from './types.js' */
/** @import {Unshown} from './exact.js' */

import * as api from './api.js';
import { button, choice, fill, h, raw } from './dom.js';
import { exactNodes } from './exact.js';
import { plural, size } from './text.js';

const MAX_ROWS = 600;
/** Of changes that a person decides about, fewer rows are shown at first, and the rest on request. */
const MAX_WATCHED_ROWS = 100;
const MAX_LINE_CHARS = 2_000;
const MORE_LINE_CHARS = 100_000;
/** Longer runs become a note. */
const MAX_BLANK_LINES = 3;
const WIDE_KEY = 'haft-diff-side-by-side';

/** A line, or a run of blank lines. @typedef {{tag: ' ' | '+' | '-', text: string, old: number, new: number, blank?: number}} Line */
/** A row of a difference; in a unified one it has only one side. @typedef {[Line | null, Line | null] | 'gap'} Row */

/** Windows that are too narrow for two columns. */
const narrow = matchMedia('(max-width: 640px)');
/** Two lines with a smaller common part are not compared within the line, because they are probably unrelated. */
const MIN_COMMON = 0.4;

let isWideChosen = choice(WIDE_KEY) === '1';

/** The difference between two texts, with a switch between its two forms.
 * @param {T.TextChanges} changes @param {Unshown | null} [unshown] is told what is not shown yet @returns {HTMLElement} */
export function textDiff(changes, unshown = null) {
	const element = h('div.diff-box');
	const isOneSided = changes.added === 0 || changes.removed === 0;
	const draw = () => {
		const isWide = isWideChosen && !narrow.matches && !isOneSided;
		const toggle =
			!narrow.matches &&
			!isOneSided &&
			button(
				'Side by side',
				() => {
					isWideChosen = !isWideChosen;
					choice(WIDE_KEY, isWideChosen ? '1' : '0');
					draw();
					element.querySelector('button')?.focus();
				},
				{ class: 'small', 'aria-pressed': String(isWide) },
			);
		const counts = h(
			'span.counts',
			h('b.plus', `+${changes.added}`),
			' ',
			h('b.minus', `−${changes.removed}`),
			h('span.sr', ` ${plural(changes.added, 'line')} added, ${changes.removed} removed`),
		);
		for (const more of element.querySelectorAll('button')) unshown?.set(more, false);
		fill(
			element,
			h('div.diff-head', counts, toggle),
			changes.hunks.length ? table(rowsOf(changes, isWide), isWide, unshown) : h('p.note', 'No line differs.'),
			changes.is_cut && h('p.note', 'The rest of this difference is too long and left out.'),
		);
	};
	draw();
	return element;
}

/** @param {T.TextChanges} changes @param {boolean} isWide */
function rowsOf(changes, isWide) {
	/** @type {Row[]} */
	const rows = [];
	for (const hunk of changes.hunks) {
		if (rows.length) rows.push('gap');
		let before = hunk.old_start;
		let after = hunk.new_start;
		/** @type {Line[]} */
		let removed = [];
		/** @type {Line[]} */
		let added = [];
		const flush = () => {
			if (isWide) for (let at = 0; at < Math.max(removed.length, added.length); at++) rows.push([removed[at] ?? null, added[at] ?? null]);
			else for (const line of [...removed, ...added]) rows.push([line, null]);
			removed = [];
			added = [];
		};
		for (const [{ tag, text }, blank] of withoutBlankRuns(hunk.lines)) {
			const line = { tag, text, old: before, new: after, blank };
			if (tag !== '+') before += blank || 1;
			if (tag !== '-') after += blank || 1;
			if (tag === '-') removed.push(line);
			else if (tag === '+') added.push(line);
			else {
				flush();
				rows.push([line, isWide ? line : null]);
			}
		}
		flush();
	}
	return rows;
}

/** The lines, each with 0, except that one line with a count stands for a long run of blank lines.
 * @param {T.DiffLine[]} lines @returns {[T.DiffLine, number][]} */
function withoutBlankRuns(lines) {
	/** @type {[T.DiffLine, number][]} */
	const all = [];
	for (let at = 0; at < lines.length;) {
		const line = /** @type {T.DiffLine} */ (lines[at]);
		let end = at;
		while (lines[end]?.tag === line.tag && /^[ \t]*$/.test(lines[end]?.text ?? '')) end++;
		const count = end - at;
		all.push([line, count > MAX_BLANK_LINES ? count : 0]);
		at += count > MAX_BLANK_LINES ? count : 1;
	}
	return all;
}

/** @param {Row[]} rows @param {boolean} isWide @param {Unshown | null} unshown */
function table(rows, isWide, unshown) {
	const body = h('tbody');
	const element = h('table', { class: isWide ? 'diff wide' : 'diff', 'aria-label': 'Changed lines' }, body);
	let at = 0;
	const more = button('', () => next(), { class: 'small' });
	const next = () => {
		const count = at === 0 && unshown ? MAX_WATCHED_ROWS : MAX_ROWS;
		body.append(...rows.slice(at, at + count).map((row) => rowElement(row, isWide, unshown)));
		at += count;
		unshown?.set(more, at < rows.length);
		more.textContent = `Show more (${plural(rows.length - at, 'line')} left)`;
		more.hidden = at >= rows.length;
	};
	next();
	return h('div.diff-scroll', { tabindex: 0, role: 'group', 'aria-label': 'Changed lines' }, element, more);
}

/** @param {Row} row @param {boolean} isWide @param {Unshown | null} unshown */
function rowElement(row, isWide, unshown) {
	if (row === 'gap') return h('tr.gap', h('td', { colspan: 4 }, '⋯'));
	const [left, right] = row;
	if (isWide) {
		const [from, to] = left && right && left !== right ? common(left.text, right.text) : [0, 0];
		return h('tr', cells(left, left?.old, from, to, unshown), cells(right, right?.new, from, to, unshown));
	}
	if (!left) return h('tr');
	const number = (/** @type {number | null} */ value) => h('td.number', value);
	return h(
		'tr',
		{ class: kind(left) },
		number(left.tag === '+' ? null : left.old),
		number(left.tag === '-' ? null : left.new),
		code(left, 0, 0, unshown),
	);
}

/** @param {Line} line */
const kind = (line) => (line.tag === '+' ? 'added' : line.tag === '-' ? 'removed' : '');

/** @param {Line | null} line @param {number | undefined} number @param {number} from @param {number} to @param {Unshown | null} unshown */
function cells(line, number, from, to, unshown) {
	if (!line) return [h('td.number.none'), h('td.none')];
	return [h('td', { class: `number ${kind(line)}` }, number), code(line, from, to, unshown)];
}

/** The text of a line, with a mark on what differs from the other side.
 * @param {Line} line @param {number} from length of the common beginning @param {number} to length of the common end
 * @param {Unshown | null} unshown */
function code(line, from, to, unshown) {
	const sign = h('span.sign', line.tag === '-' ? '−' : line.tag);
	if (line.blank) return h('td', { class: `code ${kind(line)}` }, sign, h('span.left-out', `⋯ ${plural(line.blank, 'blank line')} ⋯`));
	let shown = cutAt(line.text, MAX_LINE_CHARS);
	const text = line.text.slice(0, shown);
	const end = text.length - to;
	const marked = from + to > 0 && line.text === text && end > from;
	const parts = marked
		? [exactNodes(text.slice(0, from)), h('mark', exactNodes(text.slice(from, end))), exactNodes(text.slice(end))]
		: exactNodes(text);
	const cell = h('td', { class: `code ${kind(line)}` }, sign, h('bdi', parts));
	if (shown === line.text.length) return cell;
	const label = () => `Not shown: ${plural(line.text.length - shown, 'more character')}`;
	const more = button(
		label(),
		() => {
			const next = cutAt(line.text, shown + MORE_LINE_CHARS);
			more.before(h('bdi', exactNodes(line.text.slice(shown, next))));
			shown = next;
			more.textContent = label();
			more.hidden = shown === line.text.length;
			unshown?.set(more, !more.hidden);
		},
		{ class: 'more' },
	);
	cell.append(more);
	unshown?.set(more, true);
	return cell;
}

/** Where a text can be cut without splitting a surrogate pair.
 * @param {string} text @param {number} at */
const cutAt = (text, at) => Math.min(text.length, (text.charCodeAt(at) & 0xfc00) === 0xdc00 ? at + 1 : at);

/** @param {string} a @param {string} b */
function common(a, b) {
	const shorter = Math.min(a.length, b.length, MAX_LINE_CHARS);
	let from = 0;
	while (from < shorter && a[from] === b[from]) from++;
	let to = 0;
	while (to < shorter - from && a[a.length - 1 - to] === b[b.length - 1 - to]) to++;
	const longer = Math.max(a.trim().length, b.trim().length);
	const indentation = Math.min(from, a.length - a.trimStart().length);
	return from - indentation + to >= MIN_COMMON * longer ? [from, to] : [0, 0];
}

/** What happened to a path. */
export const CHANGE_WORDS = {
	created: 'created',
	modified: 'modified',
	deleted: 'deleted',
	moved: 'moved',
	mode: 'permissions changed',
};

/** What happened to a path, with its difference once it is loaded.
 * @param {T.PathChange} change @param {string} workspace @param {AbortSignal} signal
 * @param {import('./dom.js').Child} [more] what is said before the difference @returns {HTMLElement} */
export function changeDetail(change, workspace, signal, more) {
	const body = h('div', { 'aria-busy': 'true' }, h('p.note', 'Loading…'));
	const facts = [
		change.what === 'moved' && change.moved_to && ['moved to ', raw(change.moved_to)],
		change.moved_from && ['was at ', raw(change.moved_from)],
	];
	for (const [key, label] of /** @type {const} */ ([
		['mode', 'permissions'],
		['target', 'link to'],
		['kind', 'kind'],
	])) {
		const [before, after] = [change.before[key], change.after[key]];
		if (before !== after && before && after && ![before, after].includes('absent'))
			facts.push([`${label} `, raw(before), ' → ', raw(after)]);
	}
	if (change.contested) facts.push(['Also changed by another program while the call ran.']);
	const load = async () => {
		const content = await contentOf(change, workspace, signal).catch((error) => h('p.error', error.message));
		if (signal.aborted) return;
		fill(body, content);
		body.removeAttribute('aria-busy');
	};
	load();
	return h(
		'section.change',
		h('h3', h('span', { class: `what ${change.what}` }, CHANGE_WORDS[change.what]), ' ', raw(change.path, 'path')),
		facts.some(Boolean) &&
			h(
				'p.facts',
				facts.filter(Boolean).map((fact) => h('span', fact)),
			),
		more,
		body,
	);
}

/** @param {T.PathChange} change @param {string} workspace @param {AbortSignal} signal */
async function contentOf(change, workspace, signal) {
	const { before, after } = change;
	if (change.merged) return textDiff(change.merged);
	if (before.kind !== 'file' && after.kind !== 'file')
		return h(
			'p.note',
			{ dir: 'A directory.', link: `A link to ${after.target ?? before.target}.` }[after.kind === 'absent' ? before.kind : after.kind] ??
				'No file: it has no content to compare.',
		);
	if (before.kind === after.kind && before.hash === after.hash && before.hash) return h('p.note', 'The content is the same.');
	const sizes = [before.size, after.size].map((bytes) => (bytes === undefined ? 'none' : size(bytes))).join(' → ');
	const unknown = h('p.note', `The ledger does not have its content (${sizes}).`);
	// A difference that names no hash is one to an empty file.
	if ([before, after].some(({ kind, hash }) => kind === 'file' && !hash)) return unknown;
	const diff = await api.diff(change, workspace, signal);
	const picture = (/** @type {string} */ label, /** @type {string | null | undefined} */ hash) =>
		figure(label, hash && api.image(hash, change, workspace, signal), signal);
	switch (diff.kind) {
		case 'text':
			return textDiff(diff.changes);
		case 'image':
			return h('div.images', [picture('Before', diff.before && before.hash), picture('After', diff.after && after.hash)]);
		case 'binary':
			return h('p.note', `Not text (${sizes}).`);
		case 'too_large':
			return h('p.note', `Too large to be compared (${sizes}).`);
		default:
			return unknown;
	}
}

/** @param {string} label @param {Promise<string | null> | '' | null | undefined} image @param {AbortSignal} signal */
function figure(label, image, signal) {
	const element = h('figure', h('figcaption', image ? label : `${label}: none`));
	if (image) {
		image
			.catch(() => null)
			.then((src) => {
				element.append(src ? h('img', { src, alt: `${label} the change` }) : 'The image cannot be shown.');
				if (src) signal.addEventListener('abort', () => URL.revokeObjectURL(src));
			});
	}
	return element;
}
