// What several calls changed together, from the changes of each: for exported sessions, as the ledger's cumulative.rs does it.
/** @import * as T from './types.js' */

/** A path that changed, with its path before the first call. @typedef {{origin: string, before: T.PathState, after: T.PathState}} TrackedPath */

/** What the calls changed together, by path. Paths that are as before in the end are left out.
 * @param {{id: number, changes: T.PathChange[]}[]} calls oldest first @returns {T.PathChange[]} */
export function cumulativeChanges(calls) {
	/** @type {Map<string, TrackedPath>} */
	let paths = new Map();
	/** @type {Map<string, number[]>} */
	const callsOf = new Map();
	for (const { id, changes } of calls) {
		paths = apply(paths, changes);
		for (const { path, moved_to } of changes)
			for (const changed of moved_to ? [path, moved_to] : [path]) callsOf.set(changed, [id, ...(callsOf.get(changed) ?? [])]);
	}
	/** @type {T.PathChange[]} */
	const changed = [];
	for (const [path, { origin, before, after }] of paths) {
		if (path === origin && isSame(before, after)) continue;
		const all = new Set([...(callsOf.get(path) ?? []), ...(callsOf.get(origin) ?? [])]);
		changed.push({
			path,
			what: kindOf(before, after),
			moved_to: null,
			moved_from: origin === path ? null : origin,
			before,
			after,
			contested: false,
			calls: [...all].sort((a, b) => b - a),
		});
	}
	return changed.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The paths after one more call. What existed before it is listed under its path at that time, what it created under its path
 * afterwards.
 * @param {Map<string, TrackedPath>} paths @param {T.PathChange[]} changes */
function apply(paths, changes) {
	const moves = new Map(changes.flatMap(({ path, moved_to }) => (moved_to ? [[path, moved_to]] : [])));
	/** @param {T.PathChange} change @param {T.PathState} after */
	const track = ({ path, before }, after) => paths.set(path, { ...(paths.get(path) ?? { origin: path, before }), after });
	const isCreated = (/** @type {T.PathChange} */ { before }) => before.kind === 'absent' && moves.size > 0;
	const others = changes.filter(({ moved_to }) => !moved_to);
	for (const change of others) if (!isCreated(change)) track(change, change.after);
	if (moves.size === 0) return paths;
	// The directory itself; a change of its mode has been listed besides.
	for (const change of changes) if (change.moved_to && !paths.has(change.path)) track(change, change.before);
	paths = new Map([...paths].map(([path, tracked]) => [moved(moves, path), tracked]));
	for (const change of others) if (isCreated(change)) track(change, change.after);
	return paths;
}

/** The path after the moves: that of the innermost moved directory counts.
 * @param {Map<string, string>} moves @param {string} path */
function moved(moves, path) {
	for (let above = path; above; above = above.slice(0, Math.max(0, above.lastIndexOf('/')))) {
		const to = moves.get(above);
		if (to !== undefined) return to + path.slice(above.length);
	}
	return path;
}

/** @param {T.PathState} a @param {T.PathState} b */
const isSame = (a, b) => a.kind === b.kind && a.hash === b.hash && a.mode === b.mode && a.target === b.target;

/** @param {T.PathState} before @param {T.PathState} after @returns {T.PathChange['what']} */
function kindOf(before, after) {
	if (before.kind === 'absent') return 'created';
	if (after.kind === 'absent') return 'deleted';
	const canBeMode = before.kind === after.kind && ['dir', 'file'].includes(before.kind) && before.hash === after.hash;
	return canBeMode && before.mode !== after.mode ? 'mode' : 'modified';
}
