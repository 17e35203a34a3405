// Light, dark, or as the system says.

import { choice, fill, h } from './dom.js';

const KEY = 'haft-theme';
const THEMES = [
	['', '◐', 'as the system'],
	['light', '○', 'light'],
	['dark', '●', 'dark'],
];

export function setUpTheme() {
	let at = Math.max(
		0,
		THEMES.findIndex(([name]) => name === choice(KEY)),
	);
	const toggle = /** @type {HTMLElement} */ (document.getElementById('theme'));
	const apply = () => {
		const [name = '', sign, label] = THEMES[at] ?? [];
		document.documentElement.dataset.theme = name;
		fill(toggle, h('span', { 'aria-hidden': 'true' }, sign));
		toggle.setAttribute('aria-label', `Theme: ${label}`);
		toggle.title = `Theme: ${label}`;
		choice(KEY, name);
	};
	toggle.addEventListener('click', () => {
		at = (at + 1) % THEMES.length;
		apply();
	});
	apply();
}
