// Changed paths as a tree, and the difference of the selected one beside it.
/** @import * as T from './types.js' */

import { button, debounced, fill, h, link, raw, refill } from './dom.js';
import { CHANGE_WORDS, changeDetail } from './diff.js';
import { rowsHigh, WindowedList } from './list.js';
import { recorded } from './recorded.js';
import { baseName, plain, plural } from './text.js';

const SIGNS = { created: '+', modified: '~', deleted: '−', moved: '→', mode: '±' };

/** @param {T.PathChange} change */
const sign = ({ what }) =>
	h(
		'span',
		{ class: `what ${what}`, title: CHANGE_WORDS[what] },
		h('span', { 'aria-hidden': 'true' }, SIGNS[what]),
		h('span.sr', CHANGE_WORDS[what]),
	);

/** @typedef {{name: string, path: string, depth: number, change: T.PathChange | null, files: number, own?: T.PathChange | undefined}} Row */
/** @typedef {{name: string, path: string, folders: Map<string, Folder>, files: T.PathChange[]}} Folder */
/**
 * @typedef {object} Options
 * @property {string} label
 * @property {string} workspace
 * @property {(offset: number, text: string) => Promise<T.ChangeList>} load
 * @property {boolean} [showCalls]
 * @property {Set<string>} [left] paths that are not selected; with it the rows have check boxes
 * @property {() => void} [onSelect] called when `left` changed
 */

/** Shorter trees need no filter. */
const MIN_FILTERED = 10;
/** Trees with no more rows than this do not scroll on their own. */
const MAX_SHORT_ROWS = 40;
/** Calls of a path that are listed at first. */
const MAX_CALLS = 50;

/** The changes whose path contains a text.
 * @param {T.ChangeList} list @param {string} text @returns {T.ChangeList} */
export function withText(list, text) {
	if (!text) return list;
	const changes = list.changes.filter(({ path }) => path.toLowerCase().includes(text.toLowerCase()));
	return { ...list, changes, total: changes.length };
}

export class ChangeTree {
	/** @type {T.PathChange[]} */
	#changes = [];
	/** @type {Map<string, T.PathChange>} */
	#byPath = new Map();
	/** @type {Row[]} */
	#rows = [];
	#next = /** @type {number | null} */ (null);
	/** @type {Set<string>} */
	#closed = new Set();
	#selected = '';
	#loading = 0;
	#isBusy = false;
	#detail = h('div.detail');
	#calls = h('p.note');
	#announce = h('p.sr', { role: 'status' });
	#count = h('p.note', { role: 'status' });
	#filter = h('input', { type: 'search', placeholder: 'Filter paths', 'aria-label': 'Filter paths' });
	#box = h('div.tree-scroll');
	#shown = new AbortController();
	/** The change that is shown, as text. */
	#shownChange = '';

	/** @param {Options} options @param {AbortSignal} signal */
	constructor(options, signal) {
		this.options = options;
		this.signal = signal;
		this.list = new WindowedList(
			this.#box,
			{
				label: options.label,
				count: () => this.#rows.length,
				item: (index) => this.#rows[index],
				build: (row) => (row.change ? this.#fileRow(row, row.change) : this.#folderRow(row)),
				need: (last) => last >= this.#rows.length - 20 && this.#more(),
			},
			signal,
		);
		this.#box.append(this.list.element);
		this.#filter.addEventListener(
			'input',
			debounced(() => this.reload(0).catch(() => {})),
		);
		this.element = h(
			'div.split',
			h('h2.sr', options.label),
			h('div.tree', this.#filter, this.#count, this.#announce, this.#box),
			this.#detail,
		);
	}

	/** Loads the changes again. What is shown stays until then, and after it if it is the same.
	 * @param {number} count how many at least; as many as there were */
	async reload(count = this.#changes.length) {
		const which = ++this.#loading;
		await this.#load(which, [], 0, count);
		if (which !== this.#loading || this.signal.aborted) return;
		// In the order in which they are shown.
		const shown = this.#rows.flatMap(({ change }) => change ?? []);
		const selected =
			this.#changes.find((change) => change.path === this.#selected) ??
			shown.find(({ before, after }) => [before.kind, after.kind].includes('file')) ??
			shown[0] ??
			this.#changes[0];
		if (selected) this.#select(selected);
		else {
			this.#selected = this.#shownChange = '';
			fill(this.#detail, h('p.empty', this.#filter.value.trim() ? 'No path matches.' : 'No changes.'));
		}
	}

	async #more() {
		if (this.#next === null || this.#isBusy) return;
		await this.#load(this.#loading, this.#changes, this.#next, 0).catch(() => {});
	}

	/** Loads the changes behind some, until there are so many.
	 * @param {number} which @param {T.PathChange[]} changes @param {number} offset @param {number} count */
	async #load(which, changes, offset, count) {
		this.#isBusy = true;
		try {
			const text = this.#filter.value.trim();
			let list;
			do {
				// An exported session has no answers to what is searched for.
				const found = await this.options.load(list?.next ?? offset, recorded ? '' : text);
				if (which !== this.#loading || this.signal.aborted) return;
				list = recorded ? withText(found, text) : found;
				changes = [...changes, ...list.changes];
			} while (list.next !== null && changes.length < count);
			this.#changes = changes;
			this.#next = list.next;
			this.#count.textContent = `${plural(list.total, 'change')}${text ? ' found' : ''}`;
			this.#filter.hidden = !text && list.total < MIN_FILTERED;
			this.#box.hidden = list.total === 0;
			this.element.classList.toggle('single', list.total <= 1 && !text && !this.options.left);
			this.#rebuild();
		} finally {
			if (which === this.#loading) this.#isBusy = false;
		}
	}

	#rebuild() {
		// Undo plans list changes by kind, not by path.
		this.#changes.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
		/** @type {Folder} */
		const root = { name: '', path: '', folders: new Map(), files: [] };
		for (const change of this.#changes) {
			const parts = change.path.split('/');
			let folder = root;
			for (const [index, name] of parts.slice(0, -1).entries()) {
				let inner = folder.folders.get(name);
				if (!inner)
					folder.folders.set(
						name,
						(inner = { name: name || '/', path: parts.slice(0, index + 1).join('/'), folders: new Map(), files: [] }),
					);
				folder = inner;
			}
			folder.files.push(change);
		}
		this.#rows = [];
		this.#byPath = new Map(this.#changes.map((change) => [change.path, change]));
		this.#flatten(root, 0);
		this.#box.style.height = `calc(${rowsHigh(this.#rows.length)} + 4px)`;
		this.#box.classList.toggle('short', this.#rows.length <= MAX_SHORT_ROWS);
		this.list.update();
	}

	/** Adds the rows of a folder; returns how many files are in it.
	 * @param {Folder} folder @param {number} depth @returns {number} */
	#flatten(folder, depth) {
		let files = folder.files.length;
		for (let inner of folder.folders.values()) {
			let name = inner.name;
			// A folder with nothing but one folder in it shares a row with that folder.
			for (let only; inner.files.length === 0 && inner.folders.size === 1 && (only = [...inner.folders.values()][0]); inner = only)
				name += `${name === '/' ? '' : '/'}${only.name}`;
			/** @type {Row} */
			const row = { name, path: inner.path, depth, change: null, files: 0 };
			const at = this.#rows.push(row);
			row.files = this.#flatten(inner, depth + 1);
			if (this.#closed.has(inner.path)) this.#rows.length = at;
			files += row.files;
			// A folder that was itself created or deleted shows that in the row for its contents.
			row.own = this.#byPath.get(inner.path);
		}
		for (const change of folder.files)
			if (!folder.folders.has(baseName(change.path)))
				this.#rows.push({ name: baseName(change.path), path: change.path, depth, change, files: 1 });
		return files;
	}

	/** @param {Row} row */
	#folderRow(row) {
		const isOpen = !this.#closed.has(row.path);
		const toggle = h(
			'button',
			{
				type: 'button',
				class: 'plain grow',
				'aria-expanded': String(isOpen),
				onclick: () => {
					if (isOpen) this.#closed.add(row.path);
					else this.#closed.delete(row.path);
					this.#rebuild();
				},
			},
			h('span.twist', { 'aria-hidden': 'true' }, isOpen ? '▾' : '▸'),
			row.own && sign(row.own),
			raw(row.name, 'grow'),
			h('span.badge', row.files, h('span.sr', row.files === 1 ? ' path' : ' paths')),
		);
		return this.#row(
			row,
			this.options.left &&
				this.#check(
					row,
					this.#changes.filter(({ path }) => path === row.path || path.startsWith(`${row.path}/`)).map(({ path }) => path),
				),
			toggle,
		);
	}

	/** @param {Row} row @param {T.PathChange} change */
	#fileRow(row, change) {
		const newest = this.options.showCalls && change.calls?.[0];
		return this.#row(
			row,
			this.options.left && this.#check(row, [change.path]),
			h(
				'button',
				{
					type: 'button',
					class: 'plain grow',
					title: change.path,
					'aria-current': change.path === this.#selected && 'true',
					onclick: () => this.#select(change, true),
				},
				sign(change),
				raw(row.name, 'grow'),
			),
			newest &&
				h(
					'span.calls',
					link(`#/call/${newest}`, `#${newest}`),
					(change.calls?.length ?? 0) > 1 && ` +${(change.calls?.length ?? 1) - 1}`,
				),
		);
	}

	/** @param {Row} row @param {Array<HTMLElement | undefined | false | 0>} children */
	#row(row, ...children) {
		const element = h(
			'div.row.tree-row',
			{ 'aria-level': row.depth + 1 },
			children.map((child) => child || null),
		);
		element.style.paddingInlineStart = `${0.4 + Math.min(row.depth, 20) * 0.9}rem`;
		return element;
	}

	/** @param {Row} row @param {string[]} paths */
	#check(row, paths) {
		const left = /** @type {Set<string>} */ (this.options.left);
		const out = paths.filter((path) => left.has(path)).length;
		const box = h('input', { type: 'checkbox', 'aria-label': `Include ${row.path}` });
		box.checked = out === 0;
		box.indeterminate = out > 0 && out < paths.length;
		box.addEventListener('change', () => {
			for (const path of paths) box.checked ? left.delete(path) : left.add(path);
			this.#rebuild();
			this.options.onSelect?.();
		});
		return box;
	}

	/** @param {T.PathChange} change @param {boolean} [byHand] */
	#select(change, byHand = false) {
		this.#selected = change.path;
		this.#showCalls(change.calls ?? []);
		const text = JSON.stringify({ ...change, calls: null });
		if (text !== this.#shownChange) {
			this.#shownChange = text;
			this.#shown.abort();
			this.#shown = new AbortController();
			const signal = AbortSignal.any([this.#shown.signal, this.signal]);
			fill(this.#detail, changeDetail(change, this.options.workspace, signal, this.options.showCalls && this.#calls));
		}
		this.#rebuild();
		if (byHand) this.#announce.textContent = `Shown: ${plain(change.path)}`;
		if (byHand && matchMedia('(max-width: 800px)').matches) this.#detail.scrollIntoView({ block: 'start' });
	}

	/** @param {number[]} calls that changed the path that is shown, newest first @param {number} [count] how many are listed */
	#showCalls(calls, count = MAX_CALLS) {
		const links = calls.slice(0, count).map((call) => [' ', link(`#/call/${call}`, `#${call}`)]);
		const more = calls.length > count && button(`Show all ${calls.length}`, () => this.#showCalls(calls, Infinity), { class: 'small' });
		refill(this.#calls, calls.length > 0 && ['Changed by', links, ' ', more]);
	}
}
