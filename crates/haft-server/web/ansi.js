// Colours of terminal output. Only SGR sequences have an effect; all other sequences are dropped.

// The class names of style.css for the eight colours.
const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
// CSI; strings such as OSC, which end at the end of the line at the latest; other sequences.
const SEQUENCE = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?|[ -/]*[0-~])/g;
const UNFINISHED = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c\n]*\x1b?|[ -/]*)?$/;
const MAX_UNFINISHED_CHARS = 4096;

/** Splits output into runs of text with class names. */
export class AnsiParser {
	#pending = '';
	#bold = false;
	#faint = false;
	#italic = false;
	#underline = false;
	#inverse = false;
	#colour = '';
	#background = '';

	/** @param {string} text @param {(text: string, className: string) => void} emit */
	feed(text, emit) {
		text = this.#pending + text;
		const rest = UNFINISHED.exec(text.slice(-MAX_UNFINISHED_CHARS));
		this.#pending = rest?.[0] ?? '';
		if (this.#pending) text = text.slice(0, -this.#pending.length);
		// A bare carriage return begins a new line, because on a terminal it would hide the text before it.
		text = text.replace(/(?<!\r)\r+\n/g, '\n');
		let end = 0;
		for (const found of text.matchAll(SEQUENCE)) {
			if (found.index > end) emit(text.slice(end, found.index).replace(/\r/g, '\n'), this.#className());
			end = found.index + found[0].length;
			if (found[2] === 'm') this.#set(found[1] ?? '');
		}
		if (end < text.length) emit(text.slice(end).replace(/\r/g, '\n'), this.#className());
	}

	#className() {
		const [front, back] = this.#inverse ? [this.#background, this.#colour || 'white'] : [this.#colour, this.#background];
		const classes = [front && `fg-${front}`, back && `bg-${back}`, this.#bold && 'bold', this.#faint && 'faint'];
		return [...classes, this.#italic && 'italic', this.#underline && 'underline'].filter(Boolean).join(' ');
	}

	/** @param {string} parameters */
	#set(parameters) {
		const codes = parameters.split(/[;:]/).map(Number);
		for (let at = 0; at < codes.length; at++) {
			const code = codes[at] ?? 0;
			if (code === 0) this.#bold = this.#faint = this.#italic = this.#underline = this.#inverse = false;
			if (code === 0 || code === 39) this.#colour = '';
			if (code === 0 || code === 49) this.#background = '';
			if (code === 1) this.#bold = true;
			else if (code === 2) this.#faint = true;
			else if (code === 22) this.#bold = this.#faint = false;
			else if (code === 3 || code === 23) this.#italic = code === 3;
			else if (code === 4 || code === 24) this.#underline = code === 4;
			else if (code === 7 || code === 27) this.#inverse = code === 7;
			else if (code >= 30 && code <= 37) this.#colour = COLOURS[code - 30] ?? '';
			else if (code >= 90 && code <= 97) this.#colour = COLOURS[code - 90] ?? '';
			else if (code >= 40 && code <= 47) this.#background = COLOURS[code - 40] ?? '';
			else if (code >= 100 && code <= 107) this.#background = COLOURS[code - 100] ?? '';
			else if (code === 38 || code === 48) {
				const [colour, used] = nearest(codes.slice(at + 1));
				if (code === 38) this.#colour = colour;
				else this.#background = colour;
				at += used;
			}
		}
	}
}

/** The nearest of the eight colours, which are readable on any background of the page, and how many codes it took.
 * @param {number[]} codes @returns {[string, number]} */
function nearest(codes) {
	const [kind, index = 0, green = 0, blue = 0] = codes;
	if (kind === 2) return [ofRgb(index, green, blue), 4];
	if (kind !== 5) return ['', 0];
	if (index < 16) return [COLOURS[index % 8] ?? '', 2];
	if (index >= 232) return ['', 2];
	const cube = index - 16;
	return [ofRgb(Math.floor(cube / 36) * 51, (Math.floor(cube / 6) % 6) * 51, (cube % 6) * 51), 2];
}

/** @param {number} red @param {number} green @param {number} blue */
function ofRgb(red, green, blue) {
	const most = Math.max(red, green, blue);
	if (most - Math.min(red, green, blue) < 40) return '';
	const bit = (/** @type {number} */ part, /** @type {number} */ value) => (part > most * 0.6 ? value : 0);
	return COLOURS[bit(red, 1) + bit(green, 2) + bit(blue, 4)] ?? '';
}
