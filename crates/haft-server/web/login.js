// The view that asks for a token if the current one is missing or wrong.
/** @import {Page} from './state.js' */

import { add, form, h, labelled } from './dom.js';
import { setToken, tokenIn } from './token.js';

/** @param {Page} page @param {boolean} isWrong @param {() => void} done */
export function showLogin(page, isWrong, done) {
	setToken('');
	page.heading(isWrong ? 'The token is not valid' : 'A token is needed');
	const field = h('input', { type: 'password', autocomplete: 'off', spellcheck: 'false', required: true });
	const element = form(
		'card login',
		() => {
			const token = tokenIn(field.value.trim());
			field.setCustomValidity(token ? '' : 'No token found in this text.');
			if (!element.reportValidity()) return;
			setToken(token);
			done();
		},
		labelled('Address or token', field),
		h('button.primary.big', 'Open'),
	);
	field.addEventListener('input', () => field.setCustomValidity(''));
	add(
		page.main,
		h('p', 'Open this page with the address that ', h('code', 'haft serve'), ' printed. To print it again, run'),
		h('pre', 'haft serve --url'),
		h('p', 'You can also paste the address here. The token stays in this tab.'),
		element,
	);
	field.focus();
}
