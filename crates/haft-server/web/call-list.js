// Calls, newest or oldest first: loaded in parts and kept up to date by events.
/** @import * as T from './types.js' */

import * as api from './api.js';

/** How many earlier calls are checked for still running. */
const MAX_COMPARED = 50;
/** The precision of start times. */
const MIN_OVERLAP_MS = 1;

export class CallList {
	/** Calls that came while the list was shown, oldest first. @type {number[]} */
	#fresh = [];
	/** Loaded calls, in the order of the list. @type {number[]} */
	#older = [];
	/** @type {Map<number, T.CallSummary>} */
	#calls = new Map();
	/** @type {number | null} */
	#next = null;
	#isMore = true;
	#wanted = 0;
	/** Calls from events since the last request, whose answer may be older. @type {Map<number, T.CallSummary>} */
	#newer = new Map();
	/** @type {Promise<void> | null} */
	#loading = null;

	/** @param {api.CallFilter} filter @param {AbortSignal} signal @param {() => void} onChange @param {boolean} [isOldestFirst] */
	constructor(filter, signal, onChange, isOldestFirst = false) {
		this.isOldestFirst = isOldestFirst;
		this.filter = filter;
		this.signal = signal;
		this.onChange = onChange;
	}

	get length() {
		return this.#fresh.length + this.#older.length;
	}

	get isComplete() {
		return !this.#isMore;
	}

	/** @param {number} index in the order of the list */
	at(index) {
		const [loaded, fresh] = [this.#older.length, this.#fresh.length];
		/** @type {number | undefined} */
		let id;
		if (this.isOldestFirst) id = index < loaded ? this.#older[index] : this.#fresh[index - loaded];
		else id = index < fresh ? this.#fresh[fresh - 1 - index] : this.#older[index - fresh];
		return id === undefined ? undefined : this.#calls.get(id);
	}

	/** Of the earlier calls that were still running when this one began, the one that ended last.
	 * @param {number} index in the order of the list */
	during(index) {
		const call = this.at(index);
		let [found, until] = [/** @type {T.CallSummary | undefined} */ (undefined), (call?.started_at ?? Infinity) + MIN_OVERLAP_MS];
		for (let by = 1; call && by <= MAX_COMPARED; by++) {
			const other = this.at(this.isOldestFirst ? index - by : index + by);
			if (!other || other.session !== call.session) continue;
			const end = other.state === 'running' ? Infinity : other.started_at + other.duration_us / 1000;
			if (end >= until) [found, until] = [other, end];
		}
		return found;
	}

	/** Loads until there are this many, or all.
	 * @param {number} count */
	ensure(count) {
		this.#wanted = Math.max(this.#wanted, count);
		this.#loading ??= this.#load().finally(() => (this.#loading = null));
		return this.#loading;
	}

	async #load() {
		while (this.#isMore && this.length < this.#wanted && !this.signal.aborted) {
			this.#newer.clear();
			const list = await api.calls(this.filter, this.#next, this.signal, this.isOldestFirst);
			for (const call of list.calls) {
				if (!this.#calls.has(call.id)) this.#older.push(call.id);
				this.#calls.set(call.id, this.#newer.get(call.id) ?? call);
			}
			this.#next = list.next;
			this.#isMore = list.next !== null;
			// Calls that came after the answer was made, and that no further part will have.
			if (!this.#isMore) for (const call of this.#newer.values()) this.apply(call);
			this.onChange();
		}
	}

	/** Takes a call from an event; returns whether it is new.
	 * @param {T.CallSummary} call */
	apply(call) {
		if (this.#loading) this.#newer.set(call.id, call);
		if (this.#calls.has(call.id)) this.#calls.set(call.id, call);
		else if (this.isOldestFirst && this.#isMore) return false;
		else if (call.id > ((this.isOldestFirst ? this.#older.at(-1) : this.#older[0]) ?? 0) && this.#matches(call)) {
			this.#fresh.push(call.id);
			this.#fresh.sort((a, b) => a - b);
			this.#calls.set(call.id, call);
			return true;
		}
		return false;
	}

	/** @param {T.CallSummary} call */
	#matches(call) {
		const { session, workspace, text, tool, failed, changed } = this.filter;
		if ((session && call.session !== session) || (workspace && call.workspace !== workspace)) return false;
		if ((tool && call.tool !== tool) || (changed && !call.change_count) || (failed && ['running', 'completed'].includes(call.state)))
			return false;
		return !text || `${call.tool} ${call.about}`.toLowerCase().includes(text.toLowerCase());
	}
}
