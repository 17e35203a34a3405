// The calls before and after a call in its session.
/** @import * as T from './types.js' */

import { PAGE } from './api.js';
import { CallList } from './call-list.js';

/** How many parts of the list, newest first, are searched for the call. */
const MAX_PARTS = 5;

/** @param {T.CallSummary} call @param {AbortSignal} signal
 * @returns {Promise<{previous?: T.CallSummary | undefined, next?: T.CallSummary | undefined}>} */
export async function neighbours({ id, session }, signal) {
	const list = new CallList({ session }, signal, () => {});
	for (let part = 1; part <= MAX_PARTS; part++) {
		await list.ensure(part * PAGE);
		for (let at = 0; at < list.length; at++) {
			const isLast = at === list.length - 1 && !list.isComplete;
			if (list.at(at)?.id === id && !isLast) return { next: list.at(at - 1), previous: list.at(at + 1) };
		}
		if (list.isComplete) break;
	}
	return {};
}
