// Text from elsewhere, with control characters, direction marks and invisible characters shown as escapes.

const HIDDEN = new RegExp(
	'(?![\\n\\t])[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\u034F\\u115F\\u1160\\u17B4\\u17B5\\u180B-\\u180F\\u2800\\u3164\\uFFA0\\uFFFC' +
		'\\uFE00-\\uFE0E\\u{E0100}-\\u{E01EF}]',
	'gu',
);
// U+200D joins the parts of one emoji.
const EMOJI_JOIN = /\p{Extended_Pictographic}(?:\uFE0F|\p{Emoji_Modifier})?$/u;

/** @param {string} char */
const escapeOf = (char) => `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

/**
 * @param {string} text @param {number} at
 */
function joinsEmoji(text, at) {
	return (
		text[at] === '\u200D' &&
		EMOJI_JOIN.test(text.slice(Math.max(0, at - 8), at)) &&
		/^\p{Extended_Pictographic}/u.test(text.slice(at + 1, at + 3))
	);
}

/** The text with escapes, for attributes and titles.
 * @param {string} text */
export function plain(text) {
	return text.replace(HIDDEN, (char, at) => (joinsEmoji(text, at) ? char : `[${escapeOf(char)}]`));
}

/** The text as nodes, with escapes that cannot be mistaken for the text.
 * @param {string} text @param {RegExp} [hidden] what becomes an escape @returns {Node} */
export function shown(text, hidden = HIDDEN) {
	if (text.search(hidden) < 0) return document.createTextNode(text);
	const parts = document.createDocumentFragment();
	let end = 0;
	/** The last escape; one escape stands for a run of the same character. */
	let last = { char: '', end: -1, count: 0, mark: document.createElement('span') };
	for (const found of text.matchAll(hidden)) {
		if (joinsEmoji(text, found.index)) continue;
		const [char] = found;
		if (char !== last.char || found.index !== last.end) {
			last = { char, end: 0, count: 0, mark: document.createElement('span') };
			last.mark.className = 'escape';
			parts.append(text.slice(end, found.index), last.mark);
		}
		last.count++;
		last.mark.textContent = escapeOf(char) + (last.count > 1 ? ` ×${last.count}` : '');
		end = last.end = found.index + char.length;
	}
	parts.append(text.slice(end));
	return parts;
}

/** @param {number} count @param {string} one @param {string} [many] */
export function plural(count, one, many = `${one}s`) {
	return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

/** @param {number} bytes */
export function size(bytes) {
	if (bytes < 1000) return plural(bytes, 'byte');
	const unit = Math.min(4, Math.floor(Math.log10(bytes) / 3));
	const number = bytes / 1000 ** unit;
	return `${number.toFixed(number < 10 ? 1 : 0)} ${'kMGT'[unit - 1]}B`;
}

/** @param {number} ms */
export function duration(ms) {
	if (ms < 1) return '<1 ms';
	if (ms < 1000) return `${Math.round(ms)} ms`;
	if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
	const seconds = Math.floor(ms / 1000);
	const two = (/** @type {number} */ number) => String(number).padStart(2, '0');
	const clock = `${Math.floor(seconds / 60) % 60}:${two(seconds % 60)}`;
	return seconds < 3600 ? `${clock} min` : `${Math.floor(seconds / 3600)}:${clock.padStart(5, '0')} h`;
}

/** The time of day, with the date unless it is today.
 * @param {number} ms */
export function time(ms) {
	const then = new Date(ms);
	const clock = then.toLocaleTimeString('en-GB');
	if (then.toDateString() === new Date().toDateString()) return clock;
	return `${then.getDate()} ${then.toLocaleString('en', { month: 'short' })} ${then.getFullYear()}, ${clock.slice(0, 5)}`;
}

/** @param {string} path */
export function baseName(path) {
	return path.slice(path.replace(/\/+$/, '').lastIndexOf('/') + 1) || path;
}

/** @param {string} text */
export const capitalised = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);
