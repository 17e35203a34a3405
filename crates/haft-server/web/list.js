// A list that has only the rows near the window in the document. All rows have the height `--row`.

import { batched, h } from './dom.js';

const MARGIN_ROWS = 8;
const FOCUSABLE = 'a, button, input';

/** The height of a number of rows. It follows `--row`, which depends on the width of the window.
 * @param {number} count */
export const rowsHigh = (count) => `calc(${count} * var(--row))`;

/**
 * @template T
 * @typedef {object} Source
 * @property {string} label
 * @property {() => number} count
 * @property {(index: number) => T | undefined} item `undefined` while it is not loaded; a new object when it has changed
 * @property {(item: T, index: number) => HTMLElement} build
 * @property {(last: number) => void} [need] called with the last row that is shown
 */

/** @template T */
export class WindowedList {
	/** @type {Map<number, {item: T | undefined, node: HTMLElement}>} */
	#rows = new Map();
	#current = -1;
	#height = 40;

	/** @param {HTMLElement} scroller @param {Source<T>} source @param {AbortSignal} signal */
	constructor(scroller, source, signal) {
		this.scroller = scroller;
		this.source = source;
		this.element = h('div.rows', { role: 'list', 'aria-label': source.label });
		this.update = batched(() => this.#render());
		scroller.addEventListener('scroll', () => this.#render(), { signal, passive: true });
		const observer = new ResizeObserver(this.update);
		observer.observe(scroller);
		signal.addEventListener('abort', () => observer.disconnect());
	}

	#render() {
		const count = this.source.count();
		this.#height = parseFloat(getComputedStyle(this.element).getPropertyValue('--row')) || 40;
		this.element.style.height = rowsHigh(count);
		const top = this.scroller.getBoundingClientRect().top - this.element.getBoundingClientRect().top;
		const first = Math.max(0, Math.floor(top / this.#height) - MARGIN_ROWS);
		const last = Math.min(count - 1, Math.ceil((top + this.scroller.clientHeight) / this.#height) + MARGIN_ROWS);
		for (const [index, { node }] of this.#rows) {
			// A row with the focus stays, or the focus would be lost.
			if (index >= count || ((index < first || index > last) && !node.contains(document.activeElement))) {
				node.remove();
				this.#rows.delete(index);
			}
		}
		// From the end, so that each row can be inserted before the next one.
		for (let index = last; index >= first; index--) this.#show(index, count);
		if (last >= 0) this.source.need?.(last);
	}

	/** @param {number} index @param {number} count */
	#show(index, count) {
		const item = this.source.item(index);
		const old = this.#rows.get(index);
		if (old && old.item === item) return;
		const node = item === undefined ? h('div.row.loading', 'Loading…') : this.source.build(item, index);
		node.setAttribute('role', 'listitem');
		node.setAttribute('aria-posinset', String(index + 1));
		node.setAttribute('aria-setsize', String(count));
		node.style.top = rowsHigh(index);
		const focus = old ? [...old.node.querySelectorAll(FOCUSABLE)].indexOf(/** @type {Element} */ (document.activeElement)) : -1;
		if (old) old.node.replaceWith(node);
		else {
			const next = this.#rows.get(index + 1)?.node;
			if (next?.parentNode) next.before(node);
			else this.element.append(node);
		}
		this.#rows.set(index, { item, node });
		if (focus >= 0) /** @type {HTMLElement | undefined} */ ([...node.querySelectorAll(FOCUSABLE)][focus])?.focus({ preventScroll: true });
	}

	/** Rebuilds all rows, because their order or something besides their items changed. */
	redraw() {
		this.#rows.clear();
		this.element.replaceChildren();
		this.update();
	}

	/** Keeps the rows on the screen in place when rows are added at the beginning.
	 * @param {number} count */
	added(count) {
		const top = this.scroller.getBoundingClientRect().top - this.element.getBoundingClientRect().top;
		if (this.#current >= 0) this.#current += count;
		// All rows move on by that many places, including the one with the focus.
		const rows = [...this.#rows];
		this.#rows.clear();
		for (const [index, row] of rows) {
			this.#rows.set(index + count, row);
			row.node.style.top = rowsHigh(index + count);
		}
		if (top > 0) {
			this.element.style.height = rowsHigh(this.source.count());
			this.scroller.scrollTop += count * this.#height;
		}
		this.update();
	}

	/** Moves the focus to the next or the previous row.
	 * @param {number} by */
	move(by) {
		const count = this.source.count();
		if (count === 0) return;
		const focused = [...this.#rows].find(([, { node }]) => node.contains(document.activeElement));
		this.go(Math.max(0, Math.min(count - 1, (focused ? focused[0] : this.#current) + by)));
	}

	/** Shows a row and moves the focus to it.
	 * @param {number} index */
	go(index) {
		this.#current = index;
		const box = this.scroller.getBoundingClientRect();
		const row = this.element.getBoundingClientRect().top - box.top + index * this.#height;
		if (row < 0) this.scroller.scrollTop += row - this.#height;
		else if (row + this.#height > this.scroller.clientHeight)
			this.scroller.scrollTop += row + 2 * this.#height - this.scroller.clientHeight;
		this.#render();
		/** @type {HTMLElement | null | undefined} */ (this.#rows.get(index)?.node.querySelector(FOCUSABLE))?.focus({ preventScroll: true });
	}
}
