// Output of commands and results of calls, line by line.

import { AnsiParser } from './ansi.js';
import { add, button, h } from './dom.js';
import { plural } from './text.js';

const MAX_LINE_CHARS = 2_000;
const MORE_LINE_CHARS = 50_000;
const MAX_HELD_CHARS = 20_000_000;
const MAX_PART_CHARS = 200_000;
const MAX_PART_LINES = 1_000;

/** Output that grows. */
export class Output {
	#parser;
	#maxLines;
	/** @type {HTMLElement | null} */
	#line = null;
	#length = 0;
	/** The end of a line that is too long to be shown at once. @type {{text: string, button: HTMLElement} | null} */
	#rest = null;

	/** @param {number} maxLines how many of the last lines are kept @param {string} label
	 * @param {boolean} [isTerminal] whether a command wrote it, with colours */
	constructor(maxLines, label, isTerminal = true) {
		this.#parser = isTerminal ? new AnsiParser() : null;
		this.#maxLines = maxLines;
		this.element = h('div.output', { role: 'group', 'aria-label': label, tabindex: 0 });
	}

	/** @param {string} text */
	push(text) {
		const atEnd = this.element.scrollTop + this.element.clientHeight >= this.element.scrollHeight - 8;
		if (this.#parser) this.#parser.feed(text, (run, className) => this.#lines(run, className));
		else this.#lines(text, '');
		while (this.element.childElementCount > this.#maxLines) this.element.firstElementChild?.remove();
		if (atEnd && Number.isFinite(this.#maxLines)) this.element.scrollTop = this.element.scrollHeight;
	}

	/** @param {string} text @param {string} className */
	#lines(text, className) {
		text.split('\n').forEach((part, index) => {
			if (index > 0) {
				if (!this.#line) this.#append('', '');
				this.#line = null;
			}
			if (part) this.#append(part, className);
		});
	}

	/** @param {string} text @param {string} className */
	#append(text, className) {
		if (!this.#line) {
			this.#line = h('div', { dir: 'auto' });
			this.#length = 0;
			this.#rest = null;
			this.element.append(this.#line);
		}
		const room = Math.max(0, MAX_LINE_CHARS - this.#length);
		this.#length += text.length;
		if (room > 0) add(this.#line, className ? h('span', { class: className }, text.slice(0, room)) : text.slice(0, room));
		if (text.length > room) this.#hold(this.#line, text.slice(room));
	}

	/** @param {HTMLElement} line @param {string} text */
	#hold(line, text) {
		if (this.#rest) {
			if (this.#rest.text.length < MAX_HELD_CHARS) this.#rest.text += text;
			this.#rest.button.textContent = moreLabel(this.#rest.text);
			return;
		}
		const rest = {
			text,
			button: button(
				moreLabel(text),
				() => {
					rest.button.before(h('span', rest.text.slice(0, MORE_LINE_CHARS)));
					rest.text = rest.text.slice(MORE_LINE_CHARS);
					if (rest.text) rest.button.textContent = moreLabel(rest.text);
					else rest.button.remove();
				},
				{ class: 'small' },
			),
		};
		this.#rest = rest;
		line.append(rest.button);
	}
}

/** @param {string} text */
const moreLabel = (text) => `${plural(text.length, 'more character')}: show ${text.length > MORE_LINE_CHARS ? 'more' : 'them'}`;

/** The end of a finished text, with a button that shows it from the beginning.
 * @param {string} text @param {string} label @param {boolean} [isTerminal] */
export function endOf(text, label, isTerminal = false) {
	let from = text.length;
	for (let line = 0; line < MAX_PART_LINES && from > 0; line++) from = text.lastIndexOf('\n', from - 1);
	from = Math.max(from + 1, text.length - MAX_PART_CHARS, 0);
	const output = new Output(MAX_PART_LINES, label, isTerminal);
	output.push(text.slice(from));
	requestAnimationFrame(() => (output.element.scrollTop = output.element.scrollHeight));
	const all = button(
		`Show it from the beginning (${plural(from, 'more character')})`,
		() => element.replaceWith(outputOf(text, label, isTerminal)),
		{ class: 'small' },
	);
	const element = h('div', from > 0 && all, output.element);
	return element;
}

/** The beginning of a finished text, with a button for more.
 * @param {string} text @param {string} label @param {boolean} [isTerminal] */
export function outputOf(text, label, isTerminal = false) {
	const output = new Output(Infinity, label, isTerminal);
	let at = 0;
	const more = button('', () => next(), { class: 'small' });
	const next = () => {
		let end = Math.min(text.length, at + MAX_PART_CHARS);
		for (let line = 0, from = at; line < MAX_PART_LINES && from < end; line++) {
			const found = text.indexOf('\n', from);
			if (found < 0 || found >= end) break;
			from = found + 1;
			if (line === MAX_PART_LINES - 1) end = from;
		}
		output.push(text.slice(at, end));
		at = end;
		more.textContent = `Show more (${plural(text.length - at, 'character')} left)`;
		more.hidden = at >= text.length;
	};
	next();
	return h('div', output.element, more);
}
