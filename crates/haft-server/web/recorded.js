// The answers that an exported session contains.
/** @import * as T from './types.js' */

import { cumulativeChanges } from './cumulative.js';
import { parseJson } from './json.js';

const element = document.getElementById('export');

/** What the server would have answered, by path and query. */
class Recorded {
	/** @param {{session: string, is_cut: boolean, responses: Record<string, any>}} data */
	constructor(data) {
		this.session = data.session;
		this.isCut = data.is_cut;
		this.responses = data.responses;
	}

	/** @param {string} path @returns {Promise<any>} */
	async get(path) {
		if (!Object.hasOwn(this.responses, path)) throw new Error('This is not part of the exported file.');
		return this.responses[path];
	}

	/** @param {string} path */
	async blob(path) {
		const { type, base64 } = await this.get(path);
		return new Blob([Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))], { type });
	}

	/** All calls of a session, filtered here.
	 * @param {string} base @param {{session?: string, text?: string, tool?: string, failed?: boolean, changed?: boolean}} filter
	 * @param {boolean} [isOldestFirst] @returns {Promise<T.CallList>} */
	async calls(base, filter, isOldestFirst = false) {
		/** @type {T.CallSummary[]} */
		const calls = (await this.get(`${base}/sessions/${encodeURIComponent(filter.session ?? '')}/calls`)).calls;
		const text = filter.text?.toLowerCase();
		const found = calls.filter((call) => {
			if (filter.tool && call.tool !== filter.tool) return false;
			if (filter.failed && ['completed', 'running'].includes(call.state)) return false;
			if (filter.changed && !call.change_count) return false;
			return (
				!text ||
				JSON.stringify(this.responses[`${base}/calls/${call.id}`] ?? call)
					.toLowerCase()
					.includes(text)
			);
		});
		return { calls: isOldestFirst ? found.reverse() : found, next: null };
	}

	/** What changed up to a call, each path once.
	 * @param {string} base @param {string} session @param {number} until
	 * @param {(call: number, offset: number) => string} pathOf where a part of the changes of a call is @returns {Promise<T.Files>} */
	async filesUntil(base, session, until, pathOf) {
		const { calls } = await this.calls(base, { session, changed: true });
		const earlier = calls.filter(({ id }) => id <= until).reverse();
		const parts = earlier.map(({ id }) => ({ id, ...this.#changesOf(base, id, pathOf) }));
		const changes = cumulativeChanges(parts);
		return {
			workspace: earlier[0]?.workspace ?? '',
			changes: { changes, total: changes.length, next: null },
			calls: earlier.length,
			is_cut: false,
			missing: parts.filter(({ isWhole }) => !isWhole).length,
		};
	}

	/** The changes of a call as far as they are here.
	 * @param {string} base @param {number} call @param {(call: number, offset: number) => string} pathOf
	 * @returns {{changes: T.PathChange[], isWhole: boolean}} */
	#changesOf(base, call, pathOf) {
		/** @type {T.ChangeList | undefined} */
		const first = this.responses[`${base}/calls/${call}`]?.changes;
		if (!first || first.next === null) return { changes: first?.changes ?? [], isWhole: Boolean(first) };
		/** @type {T.PathChange[]} */
		const changes = [];
		for (let offset = /** @type {number | null} */ (0); offset !== null;) {
			/** @type {T.ChangeList | undefined} */
			const part = this.responses[base + pathOf(call, offset)];
			if (!part) return { changes: offset ? changes : first.changes, isWhole: false };
			changes.push(...part.changes);
			offset = part.next;
		}
		return { changes, isWhole: true };
	}
}

export const recorded = element ? new Recorded(parseJson(element.textContent ?? '')) : null;
