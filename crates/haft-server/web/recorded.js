// The answers that an exported session contains.
/** @import * as T from './types.js' */

const element = document.getElementById('export');

/** What the server would have answered, by path and query. */
class Recorded {
	/** @param {{session: string, responses: Record<string, any>}} data */
	constructor(data) {
		this.session = data.session;
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
	 * @returns {Promise<T.CallList>} */
	async calls(base, filter) {
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
		return { calls: found, next: null };
	}

	/** What changed up to a call, each path once.
	 * @param {string} base @param {string} session @param {number} until @returns {Promise<T.Files>} */
	async filesUntil(base, session, until) {
		const { calls } = await this.calls(base, { session, changed: true });
		const earlier = calls.filter((call) => call.id <= until).reverse();
		/** @type {Map<string, T.PathChange>} */
		const found = new Map();
		for (const call of earlier) {
			for (const change of (await this.get(`${base}/calls/${call.id}`)).changes.changes) add(found, change, call.id);
		}
		const changes = [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
		return {
			workspace: earlier[0]?.workspace ?? '',
			changes: { changes, total: changes.length, next: null },
			calls: earlier.length,
			is_cut: false,
		};
	}
}

/** @param {Map<string, T.PathChange>} found @param {T.PathChange} change @param {number} call */
function add(found, change, call) {
	const earlier = found.get(change.path);
	if (!earlier) {
		found.set(change.path, { ...change, calls: [call] });
		return;
	}
	const { before } = earlier;
	const { after } = change;
	found.delete(change.path);
	if (before.kind === after.kind && before.hash === after.hash && before.mode === after.mode) return;
	const what = before.kind === 'absent' ? 'created' : after.kind === 'absent' ? 'deleted' : 'modified';
	found.set(change.path, { ...change, what, before, calls: [call, ...(earlier.calls ?? [])] });
}

export const recorded = element ? new Recorded(JSON.parse(element.textContent ?? '')) : null;
