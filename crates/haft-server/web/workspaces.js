// A field to choose among the folders in which sessions worked.

import * as api from './api.js';
import { h, labelled, select } from './dom.js';
import { getMeta } from './state.js';
import { plain } from './text.js';

/** @param {string} current @param {(workspace: string) => string} hrefOf @param {AbortSignal} signal */
export function workspacePicker(current, hrefOf, signal) {
	const field = select([], { onchange: () => void (location.hash = hrefOf(field.value)) });
	/** @param {string[]} names */
	const show = (names) => {
		field.replaceChildren(...[...new Set([current, getMeta().workspace, ...names])].map((value) => h('option', { value }, plain(value))));
		field.value = current;
	};
	show([]);
	api.sessions({}, signal).then(
		({ sessions }) => show(sessions.map(({ workspace }) => workspace)),
		() => {},
	);
	return h('div.bar-top', labelled('Folder', field, 'grow'));
}
