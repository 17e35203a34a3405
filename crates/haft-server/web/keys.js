// Keyboard shortcuts, which do nothing while text is typed.
/** @import {Page} from './state.js' */

import { button, h } from './dom.js';

/** Keys to be pressed in sequence are one text. @type {[string[], string][]} */
const HELP = [
	[['j', 'k'], 'next and previous row or card'],
	[['Enter'], 'open the row'],
	[['a', 'd'], 'allow once, or deny, the question in focus'],
	[['u'], 'undo the call or session that is shown'],
	[['[', ']'], 'previous and next call'],
	[['/'], 'search or filter'],
	[['Esc'], 'leave a field'],
	[['g n', 'g s', 'g c'], 'go to Now, Sessions, Chat'],
	[['g f', 'g u', 'g r'], 'go to Files, Undo, Rules'],
	[['←', '→'], 'step in Replay'],
	[['e', 'E'], 'next and previous error in Replay'],
	[['Enter', 'Shift Enter'], 'send a message in Chat, or begin a new line'],
	[['?'], 'this help'],
];
/** @type {Record<string, string>} */
const GO = { n: 'now', s: 'sessions', c: 'chat', f: 'files', u: 'undo', r: 'rules' };

/** @param {() => Page | null} current */
export function setUpKeys(current) {
	const help = h(
		'dialog.help',
		{ 'aria-label': 'Keys' },
		h('h2', 'Keys'),
		h(
			'dl',
			HELP.map(([keys, text]) =>
				h(
					'div',
					h(
						'dt',
						keys.map((key) => [key.split(' ').map((part) => h('kbd', part)), ' ']),
					),
					h('dd', text),
				),
			),
		),
		button('Close', () => help.close()),
	);
	document.body.append(help);
	document.getElementById('help')?.addEventListener('click', () => help.showModal());
	let before = '';
	document.addEventListener('keydown', (event) => {
		const target = /** @type {HTMLElement} */ (event.target);
		if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || help.open) return;
		// Holding a key down must not answer questions.
		if (event.repeat && 'ad'.includes(event.key)) return;
		if (target.closest('textarea, select, input:not([type=checkbox], [type=radio], [type=range])')) {
			if (event.key === 'Escape') target.blur();
			return;
		}
		const last = before;
		before = event.key;
		const page = current();
		const action =
			last === 'g' && GO[event.key] && document.getElementById('nav')?.hidden === false
				? () => void (location.hash = `#/${GO[event.key]}`)
				: actionOf(event.key, page, help);
		if (!action || (target.matches('[type=range]') && event.key.startsWith('Arrow'))) return;
		event.preventDefault();
		action();
	});
}

/** @param {string} key @param {Page | null} page @param {HTMLDialogElement} help @returns {(() => void) | undefined} */
function actionOf(key, page, help) {
	if (key === '?') return () => help.showModal();
	if (!page) return undefined;
	if (Object.hasOwn(page.keys, key)) return page.keys[key];
	const search = page.main.querySelector('input[type=search]');
	if (key === '/' && search instanceof HTMLInputElement) return () => search.focus();
	if (key === 'j' || key === 'k')
		return () => (page.list ? page.list.move(key === 'j' ? 1 : -1) : moveAmong(page.main, key === 'j' ? 1 : -1));
	return undefined;
}

/** @param {HTMLElement} main @param {number} by */
function moveAmong(main, by) {
	const all = [.../** @type {NodeListOf<HTMLElement>} */ (main.querySelectorAll('[data-nav]'))];
	const at = all.findIndex((element) => element.contains(document.activeElement));
	const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
	if (!next) return;
	const target = /** @type {HTMLElement | null} */ (next.matches('a, button, [tabindex]') ? next : next.querySelector('a, button'));
	target?.focus({ preventScroll: true });
	// A long card is shown from its beginning.
	next.scrollIntoView({ block: next.offsetHeight > main.clientHeight ? 'start' : 'nearest' });
}
