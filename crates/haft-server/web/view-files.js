// What changed in a folder or by a session, and by which call.
/** @import {Page} from './state.js' */

import * as api from './api.js';
import { add, debounced, h } from './dom.js';
import { follow } from './live.js';
import { getMeta, sessionHeading } from './state.js';
import { plural } from './text.js';
import { ChangeTree } from './tree.js';
import { workspacePicker } from './workspaces.js';

/** @param {Page} page @param {string} [kind] @param {string} [which] */
export async function showFiles(page, kind = 'workspace', which = getMeta().workspace) {
	const { main, signal } = page;
	const isSession = kind === 'session';
	let workspace = which;
	if (isSession) {
		const { session } = await api.session(which, signal);
		workspace = session.workspace;
		sessionHeading(page, session, 'Files');
	} else {
		page.heading('Files');
		main.append(workspacePicker(which, (next) => `#/files/workspace/${encodeURIComponent(next)}`, signal));
	}
	const note = h('p.note');
	add(main, note);
	const load = async (/** @type {number} */ offset, /** @type {string} */ path) => {
		const files = await api.files({ ...(isSession ? { session: which } : { workspace: which }), path }, offset, signal);
		note.textContent = `Changes made by ${plural(files.calls, 'call')}.${files.is_cut ? ' Older calls are left out.' : ''}`;
		return files.changes;
	};
	const tree = new ChangeTree({ label: 'Changed paths', workspace, load, showCalls: true }, signal);
	page.list = tree.list;
	main.append(tree.element);
	const reload = debounced(() => tree.reload().catch(() => {}), 600);
	await follow(
		signal,
		() => tree.reload(),
		({ event, data }) => {
			const isHere = isSession ? data.session === which : data.workspace === workspace;
			if (event === 'call' && isHere && (data.change_count || data.undone_by)) reload();
		},
	);
}
