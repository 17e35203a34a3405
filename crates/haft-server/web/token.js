// The token: from the address, kept for this tab only. Importing this module removes it from the address.

const KEY = 'haft-token';

let token = '';

/** The token in the fragment of an address, or in a text that is the token itself.
 * @param {string} text */
export function tokenIn(text) {
	const fragment = text.slice(text.indexOf('#') + 1);
	return new URLSearchParams(fragment).get('token') ?? (/^[\w.~+/=-]{16,}$/.test(text) ? text : '');
}

if (location.hash.startsWith('#token=')) {
	token = tokenIn(location.hash);
	const view = new URLSearchParams(location.hash.slice(1)).get('view');
	history.replaceState(null, '', location.pathname + (view?.startsWith('/') ? `#${view}` : ''));
	setToken(token);
} else {
	try {
		token = sessionStorage.getItem(KEY) ?? '';
	} catch {
		// A page opened from a file has no storage, and an export needs no token.
	}
}

export const getToken = () => token;

/** @param {string} next */
export function setToken(next) {
	token = next;
	try {
		if (next) sessionStorage.setItem(KEY, next);
		else sessionStorage.removeItem(KEY);
	} catch {
		// Without storage the token lives until the page is left.
	}
}
