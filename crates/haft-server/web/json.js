// Parses JSON so that its numbers are shown as they were sent.

/** Keeps whole numbers that JavaScript would round as they were written, for `JSON.stringify`.
 * @param {string} _key @param {unknown} value @param {{source?: string}} [context] */
function exactNumbers(_key, value, context) {
	if (typeof value !== 'number' || !Number.isInteger(value) || Number.isSafeInteger(value) || !context?.source) return value;
	return 'rawJSON' in JSON ? /** @type {any} */ (JSON).rawJSON(context.source) : context.source;
}

/** @param {string} text */
export const parseJson = (text) => JSON.parse(text, exactNumbers);
