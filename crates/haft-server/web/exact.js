// Texts that a person decides about, shown exactly, character by character. Where something is not shown, a note says so.

import { add, button, h } from './dom.js';
import { plural, shown } from './text.js';

/** Longer runs become a note, because they would push what follows out of sight. */
const MAX_BLANK_LINES = 3;
const MAX_SPACES = 80;
/** What is shown before a person asks for more. */
const FIRST = { lines: 40, chars: 4_000 };
const FIRST_UNWATCHED = { lines: 1_000, chars: 200_000 };
const MORE = { lines: 20_000, chars: 500_000 };
const MAX_PIECE_CHARS = 2_000;
const MAX_LINE_CHARS = 1_000;

// What text.js escapes, and everything else that cannot be seen: spaces other than the ordinary one, unassigned characters,
// U+1D159, and piled-up accents. U+FE0F belongs to the emoji before it.
const UNSEEN =
	'[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Cn}\\p{Z}\\u2800\\uFFFC\\u{1D159}]|(?!\\uFE0F)\\p{DI}|(?<!\\p{Extended_Pictographic})\\uFE0F|(?<=\\p{M}{4})\\p{M}';
const UNSEEN_IN_TEXT = new RegExp(`(?![ \\n\\t])(?:${UNSEEN})`, 'gu');
const UNSEEN_IN_LINE = new RegExp(`(?! )(?:${UNSEEN})`, 'gu');
const LONG_SPACES = new RegExp(`([ \\t]{${MAX_SPACES + 1},})`);

/** The parts of a question that are not shown yet. */
export class Unshown {
	/** @type {Set<HTMLButtonElement>} */
	#buttons = new Set();

	/** @param {() => void} onChange */
	constructor(onChange) {
		this.onChange = onChange;
	}

	get isEmpty() {
		return this.#buttons.size === 0;
	}

	/** The button that shows the first missing part. */
	get first() {
		return [...this.#buttons].sort((a, b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1))[0];
	}

	/** @param {HTMLButtonElement} more a button that shows more @param {boolean} isMore whether there is more */
	set(more, isMore) {
		if (isMore === this.#buttons.has(more)) return;
		if (isMore) this.#buttons.add(more);
		else this.#buttons.delete(more);
		this.onChange();
	}
}

/** @param {string} text */
const note = (text) => h('span.left-out', `⋯ ${text} ⋯`);

/** @param {string} text */
const spaces = (text) => note(text.includes('\t') ? plural(text.length, 'space or tab', 'spaces or tabs') : plural(text.length, 'space'));

/** A part of a line as nodes.
 * @param {string} text @param {RegExp} [unseen] */
export const exactNodes = (text, unseen = UNSEEN_IN_TEXT) =>
	text.split(LONG_SPACES).map((part, index) => (index % 2 ? spaces(part) : part && shown(part, unseen)));

/** The blank lines after the end of a line, and where they end.
 * @param {string} text @param {number} end */
function blankLines(text, end) {
	let count = 0;
	for (let at = end; at < text.length; at++) {
		if (text[at] === '\n') {
			count++;
			end = at + 1;
		} else if (!isSpace(text, at)) break;
	}
	return { count, end };
}

/** @param {string} text @param {number} at */
const isSpace = (text, at) => text[at] === ' ' || text[at] === '\t';

/** A part of a text: characters of a line, or else the end of a line and how many blank lines after it are left out.
 * @typedef {{chars: string, blank: number, end: number}} Piece */

/** @param {string} text @returns {Generator<Piece, undefined>} */
function* pieces(text) {
	for (let at = 0; at < text.length;) {
		const from = at;
		if (text[at] === '\n') {
			const { count, end } = blankLines(text, at + 1);
			const isLong = count > MAX_BLANK_LINES;
			at = isLong ? end : at + 1;
			yield { chars: '', blank: isLong ? count : 0, end: at };
			continue;
		}
		while (at < text.length && text[at] !== '\n' && at - from < MAX_PIECE_CHARS) at++;
		// Neither a run of spaces nor a surrogate pair is cut.
		while (isSpace(text, at)) at++;
		if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) at++;
		yield { chars: text.slice(from, at), blank: 0, end: at };
	}
	return undefined;
}

/** A text in lines, with a button for the rest of a long one.
 * @param {string} text @param {string} label @param {Unshown | null} [unshown] is told what is not shown yet */
export function exactText(text, label, unshown = null) {
	const source = pieces(text);
	let piece = source.next();
	let line = h('div');
	let end = 0;
	const more = button('', () => show(MORE), { class: 'more' });
	const box = h('div.output.exact', { role: 'group', 'aria-label': label, tabindex: 0 }, line, more);
	const newLine = () => {
		line = h('div');
		more.before(line);
	};
	/** @param {{lines: number, chars: number}} limit */
	const show = (limit) => {
		const hadFocus = document.activeElement === more;
		for (let lines = 0, chars = 0; !piece.done && lines < limit.lines && chars < limit.chars; piece = source.next()) {
			const { value } = piece;
			end = value.end;
			chars += value.chars.length;
			if (value.chars) {
				add(line, exactNodes(value.chars));
				continue;
			}
			lines++;
			newLine();
			if (!value.blank) continue;
			line.append(note(plural(value.blank, 'blank line')));
			newLine();
		}
		more.hidden = Boolean(piece.done);
		more.textContent = `Not shown: ${plural(text.length - end, 'more character')}. Show ${text.length - end > MORE.chars ? 'more' : 'them'}`;
		unshown?.set(more, !piece.done);
		if (hadFocus && piece.done) box.focus({ preventScroll: true });
	};
	show(unshown ? FIRST : FIRST_UNWATCHED);
	return box;
}

/** A text within a line; line breaks are shown as escapes as well.
 * @param {string} text @param {string} className */
const exactLine = (text, className) => h('bdi', { class: `exact ${className}` }, exactNodes(text, UNSEEN_IN_LINE));

/** A text within a line if it is short, else as lines.
 * @param {string} text @param {string} label @param {Unshown} unshown @param {string} [className] */
export const exact = (text, label, unshown, className = 'code') =>
	text.length > MAX_LINE_CHARS || text.includes('\n') ? exactText(text, label, unshown) : exactLine(text, className);
