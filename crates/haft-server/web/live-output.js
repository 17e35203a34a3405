// The output of a running call: the parts that events bring, and what is missing between them.
/** @import * as T from './types.js' */
/** @import {Output} from './output.js' */

import * as api from './api.js';

export class LiveOutput {
	#call;
	#output;
	#signal;
	#next;
	#maxGapBytes;
	/** Parts are applied one after the other. */
	#last = Promise.resolve();

	/** @param {number} call @param {Output} output @param {AbortSignal} signal
	 * @param {{from?: number, maxGapBytes?: number}} [options] where it begins, and the longest gap that is filled */
	constructor(call, output, signal, { from = 0, maxGapBytes = Infinity } = {}) {
		this.#call = call;
		this.#output = output;
		this.#signal = signal;
		this.#next = from;
		this.#maxGapBytes = maxGapBytes;
	}

	/** Shows what is new in a part.
	 * @param {T.LiveOutput} part */
	push(part) {
		this.#last = this.#last.then(() => {
			if (part.next <= this.#next) return undefined;
			// Positions are bytes, so what overlaps cannot be cut off the text: the rest is loaded.
			if (part.from !== this.#next && part.from - this.#next <= this.#maxGapBytes) return this.#load(part.next);
			this.#next = part.next;
			return this.#output.push(part.text);
		});
	}

	/** Loads all that there is. */
	catchUp() {
		this.#last = this.#last.then(() => this.#load(Infinity));
		return this.#last;
	}

	/** @param {number} until */
	async #load(until) {
		while (this.#next < until && !this.#signal.aborted) {
			const found = await api.output(this.#call, this.#next, this.#signal).catch(() => null);
			if (!found || found.next <= this.#next) return;
			this.#next = found.next;
			this.#output.push(found.text);
		}
	}
}
