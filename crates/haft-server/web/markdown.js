// Turns models' Markdown into elements: headings, lists, code, quotes, tables, emphasis and links to http and https.
/** @import {Unshown} from './exact.js' */

import { add, h, raw } from './dom.js';
import { exact, exactText } from './exact.js';

const MAX_CHARS = 200_000;
/** A wider table is shown as text, because it would have to be scrolled. */
const MAX_CELLS = 12;
const INLINE =
	/`{1,8}([^`\n]{1,5000})`{1,8}|\*\*(\S[^*\n]{0,2000}?)\*\*|(?<!\w)[*_](\S[^*_\n]{0,2000}?)[*_](?!\w)|~~([^~\n]{1,2000})~~|\[([^\][\n]{1,500})\]\((\S{1,2000}?)\)|(https?:\/\/[^\s<>()]{1,2000}[^\s<>().,;:!?'"])/g;
// With `s`, because a line separator that `.` does not match would make these patterns try every length.
const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(?:\[([ xX])\]\s+)?(.*)$/s;

/** @param {string} text @param {Unshown | null} [unshown] is told what is not shown yet */
export function markdown(text, unshown = null) {
	const root = h('div.markdown');
	if (text.length > MAX_CHARS) root.append(exactText(text, 'Text', unshown));
	else blocks(root, text.split(/\r\n|\r|\n/), 0, unshown);
	return root;
}

/** @param {HTMLElement} root @param {string[]} lines @param {number} depth @param {Unshown | null} unshown */
function blocks(root, lines, depth, unshown) {
	for (let at = 0; at < lines.length;) {
		const line = lines[at] ?? '';
		const from = at++;
		const heading = /^(#{1,6})\s+(.*)$/s.exec(line);
		const [, fence, language] = /^\s*(`{3,}|~{3,})(.*)$/s.exec(line) ?? [];
		/** This line and the following ones for which a condition holds. @param {(line: string) => boolean} holds */
		const take = (holds) => {
			while (at < lines.length && holds(lines[at] ?? '')) at++;
			return lines.slice(from, at);
		};
		if (fence) {
			// Only a line with nothing but the fence ends the block, so that no text is lost.
			const code = take((next) => !next.trim().startsWith(fence) || next.trim() !== fence[0]?.repeat(next.trim().length)).slice(1);
			at++;
			const name = language?.trim();
			if (name) root.append(h('p.note', unshown ? exact(name, 'Language', unshown) : raw(name)));
			root.append(exactText(code.join('\n'), 'Code', unshown));
		} else if (heading) {
			// The page itself uses the first three levels.
			root.append(inline(h(/** @type {'h4'} */ (`h${Math.min(6, 3 + (heading[1]?.length ?? 1))}`), null), heading[2] ?? ''));
		} else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) root.append(h('hr'));
		else if (line.startsWith('>') && depth < 8) {
			const quote = h('blockquote');
			blocks(
				quote,
				take((next) => next.startsWith('>')).map((quoted) => quoted.replace(/^> ?/, '')),
				depth + 1,
				unshown,
			);
			root.append(quote);
		} else if (ITEM.test(line))
			list(
				root,
				take((next) => ITEM.test(next) || /^\s+\S/.test(next)),
			);
		else if (
			line.includes('|') &&
			line.split('|').length <= MAX_CELLS &&
			(lines[at] ?? '').length < 1000 &&
			/^[\s|:-]*-[\s|:-]*$/.test(lines[at] ?? '') &&
			(lines[at] ?? '').includes('|')
		)
			table(
				root,
				take((next) => next.includes('|') && next.split('|').length <= MAX_CELLS),
			);
		else if (line.trim())
			root.append(
				inline(h('p'), take((next) => next.trim() !== '' && !/^(#{1,6}\s|\s*(```|~~~)|>)/.test(next) && !ITEM.test(next)).join('\n')),
			);
	}
}

/** @param {HTMLElement} root @param {string[]} lines */
function list(root, lines) {
	/** @type {{indent: number, list: HTMLElement}[]} */
	const open = [];
	let item = h('li');
	for (const line of lines) {
		const [, space, number, box, text] = ITEM.exec(line) ?? [];
		if (text === undefined) {
			inline(item, `\n${line.trim()}`);
			continue;
		}
		const indent = (space ?? '').length;
		while (open.length > 1 && indent < (open.at(-1)?.indent ?? 0)) open.pop();
		const last = open.at(-1);
		if (!last || (indent > last.indent + 1 && open.length < 8)) {
			const inner = number ? h('ol', { start: number }) : h('ul');
			(last ? item : root).append(inner);
			open.push({ indent, list: inner });
		}
		item = h('li', box && (box === ' ' ? '☐ ' : '☑ '));
		inline(item, text);
		open.at(-1)?.list.append(item);
	}
}

/** @param {HTMLElement} root @param {string[]} lines */
function table(root, lines) {
	const rows = lines
		.filter((_, index) => index !== 1)
		.map((line) =>
			line
				.trim()
				.replace(/^\||\|$/g, '')
				.split('|'),
		);
	const row = (/** @type {string[]} */ cells, /** @type {'td' | 'th'} */ tag) =>
		h(
			'tr',
			cells.map((cell) => inline(h(tag, null), cell.trim())),
		);
	root.append(
		h(
			'div.table-scroll',
			{ tabindex: 0, role: 'group', 'aria-label': 'Table' },
			h(
				'table',
				h('thead', row(rows[0] ?? [], 'th')),
				h(
					'tbody',
					rows.slice(1).map((cells) => row(cells, 'td')),
				),
			),
		),
	);
}

/** @template {HTMLElement} E @param {E} element @param {string} text @returns {E} */
function inline(element, text) {
	let end = 0;
	for (const found of text.matchAll(INLINE)) {
		const [whole, code, strong, emphasis, struck, label, target, address] = found;
		add(element, text.slice(end, found.index));
		end = found.index + whole.length;
		if (code) element.append(h('code', raw(code)));
		else if (strong) element.append(inline(h('strong'), strong));
		else if (emphasis) element.append(inline(h('em'), emphasis));
		else if (struck) element.append(h('s', struck));
		else add(element, anchor(label ?? address ?? '', target ?? address ?? '') ?? whole);
	}
	add(element, text.slice(end));
	return element;
}

/** @param {string} label @param {string} target */
function anchor(label, target) {
	if (!/^https?:\/\//i.test(target) || !URL.canParse(target)) return null;
	const { href } = new URL(target);
	const element = h('a', { href, rel: 'noreferrer noopener', target: '_blank' }, raw(label));
	// The text of a link may name another address than its target.
	return label === target ? element : h('span', element, ' ', raw(`(${href})`, 'note'));
}
