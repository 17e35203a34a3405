// Remembers how a view was left, for when the browser goes back to it: its scroll position and the link that had the focus.

const MAX_ENTRIES = 200;

/** @typedef {{top: number, href: string | null}} Place */

/** Places by entry of the browser's history. @type {Map<string, Place>} */
const places = new Map();
let current = '';
let next = 0;

/** Stores the place of the view that is left and returns that of the entry that is shown now; `undefined` for a new entry.
 * @param {HTMLElement} main @returns {Place | undefined} */
export function changeEntry(main) {
	if (current) {
		const link = main.contains(document.activeElement) ? document.activeElement?.closest('a') : null;
		places.set(current, { top: main.scrollTop, href: link?.getAttribute('href') ?? null });
		for (const old of [...places.keys()].slice(0, -MAX_ENTRIES)) places.delete(old);
	}
	current = history.state?.entry ?? '';
	if (!current) {
		// Differs from the ids of entries that were made before a reload.
		current = `${Math.round(performance.timeOrigin)}-${next++}`;
		replace({ entry: current }, location.hash);
	}
	return places.get(current);
}

/** Replaces the address of the current entry, without loading or leaving a view.
 * @param {string} hash */
export function replaceHash(hash) {
	if (location.hash !== hash) replace(history.state, hash);
}

/** @param {unknown} state @param {string} hash */
function replace(state, hash) {
	try {
		history.replaceState(state, '', hash);
	} catch {
		// Some browsers store no state for a page that was opened from a file.
	}
}

/** Returns to a place. Waits for what is loaded later, until the person does something else.
 * @param {HTMLElement} main @param {Place} place @param {AbortSignal} signal aborted when the view is left */
export function restore(main, { top, href }, signal) {
	const stop = new AbortController();
	const isThere = () => {
		// A question that took the focus stays in view.
		if (document.activeElement?.closest('.question')) return true;
		main.scrollTop = top;
		const link = href ? [...main.querySelectorAll('a')].find((anchor) => anchor.getAttribute('href') === href) : null;
		link?.focus({ preventScroll: true });
		return Math.abs(main.scrollTop - top) < 1 && (!href || Boolean(link));
	};
	const observer = new MutationObserver(() => isThere() && stop.abort());
	stop.signal.addEventListener('abort', () => observer.disconnect());
	observer.observe(main, { childList: true, subtree: true });
	for (const name of ['wheel', 'keydown', 'pointerdown', 'touchstart'])
		document.addEventListener(name, () => stop.abort(), { signal: stop.signal, passive: true });
	signal.addEventListener('abort', () => stop.abort());
	if (isThere()) stop.abort();
}
