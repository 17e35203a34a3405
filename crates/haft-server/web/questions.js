// Open questions of all sessions: the count in the title, notifications, and the list that views show.
/** @import * as T from './types.js' */

import * as api from './api.js';
import { follow } from './live.js';
import { jsonText } from './state.js';
import { plain, plural } from './text.js';

/** @type {Map<number, T.Question>} */
const open = new Map();
/** Questions whose body is being loaded, with a token for each load. @type {Map<number, object>} */
const loading = new Map();
/** @type {Set<(question: T.ListedQuestion | null) => void>} */
const handlers = new Set();
/** Titles leave out a longer path. */
const MAX_TITLE_CHARS = 80;
const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 8_000;
let title = 'Haft';

function showCount() {
	document.title = (open.size ? `(${open.size}) ` : '') + title;
	const badge = document.getElementById('question-count');
	if (!badge) return;
	badge.textContent = open.size ? String(open.size) : '';
	badge.title = open.size ? plural(open.size, 'question') : '';
}

/** @param {string} text */
export function setTitle(text) {
	title = plain(text).slice(0, 120);
	showCount();
}

/** @param {string} session if empty, the questions of all sessions */
export const openQuestions = (session = '') =>
	[...open.values()].filter((question) => !session || question.session === session).sort((a, b) => a.id - b.id);

/** Calls the handler with each question that is new or closed, and with `null` when all were loaded again.
 * @param {(question: T.ListedQuestion | null) => void} handler @param {AbortSignal} signal */
export function onQuestions(handler, signal) {
	handlers.add(handler);
	signal.addEventListener('abort', () => handlers.delete(handler));
}

/** What a question is about, in a few words.
 * @param {T.Question} question */
export function questionTitle({ body, workspace }) {
	switch (body.kind) {
		case 'permission':
			return `${body.agent ? `${body.agent}: ` : ''}${permissionTitle(body, workspace)}`;
		case 'host':
			return `Let a command reach ${body.host}:${body.port}?`;
		case 'plan':
			return 'Approve this plan?';
		case 'choices':
			return body.questions.length === 1 ? 'A question for you' : `${body.questions.length} questions for you`;
		default:
			return 'A question';
	}
}

/** @param {T.PermissionBody} body @param {string} workspace */
function permissionTitle(body, workspace) {
	const { name, text } = mainArgument(body);
	const has = (/** @type {string} */ effect) => body.effects.some((line) => line.startsWith(`${effect} `));
	// Arguments of these names can mean anything to the tool of a server.
	if (has('calls the server')) return `Allow ${body.tool}?`;
	if (name === 'command') return has('runs') ? 'Run this command?' : `Allow ${body.tool}?`;
	if (name === 'url') return has('reaches') ? 'Fetch this page?' : `Allow ${body.tool}?`;
	const path = text.startsWith(`${workspace}/`) ? text.slice(workspace.length + 1) : text;
	return name && path.length <= MAX_TITLE_CHARS ? `${body.tool} ${path}?` : `Allow ${body.tool}?`;
}

/** The argument that says what a call is about (a command, address or path) and its name; both empty if there is none.
 * @param {{input: unknown}} call */
export function mainArgument({ input }) {
	const values = /** @type {Record<string, unknown>} */ (input !== null && typeof input === 'object' && !Array.isArray(input) ? input : {});
	const name = ['command', 'url', 'file_path', 'path'].find((name) => Object.hasOwn(values, name)) ?? '';
	return { name, text: name && jsonText(values[name]) };
}

/** @param {T.Question} question */
function notify(question) {
	if (!('Notification' in globalThis) || Notification.permission !== 'granted') return;
	const about = question.body.kind === 'permission' ? mainArgument(question.body).text : '';
	const notice = new Notification(plain(questionTitle(question)), { body: plain(about).slice(0, 200), tag: `haft-${question.id}` });
	notice.onclick = () => {
		window.focus();
		location.hash = '#/now';
	};
}

/** Adds a question, after loading its body if that was left out.
 * @param {T.ListedQuestion} listed @param {() => void} done */
async function addOpen(listed, done) {
	const { body } = listed;
	loading.delete(listed.id);
	if (body) {
		open.set(listed.id, { ...listed, body });
		return done();
	}
	const load = {};
	loading.set(listed.id, load);
	for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
		const found = await api.question(listed.id).catch((error) => (error.status === 404 ? null : undefined));
		// Meanwhile the question may have been answered, or loaded again.
		if (loading.get(listed.id) !== load) return undefined;
		if (found !== undefined) {
			loading.delete(listed.id);
			if (!found?.is_open || !found.body) return undefined;
			open.set(listed.id, found);
			return done();
		}
		await new Promise((resolve) => setTimeout(resolve, wait));
	}
}

/** All questions. Retries until the request succeeds or the token is refused, because without them none would be shown. */
async function allQuestions() {
	for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
		try {
			return await api.questions();
		} catch (error) {
			if (error instanceof api.ApiError && [401, 403].includes(error.status)) throw error;
		}
		await new Promise((resolve) => setTimeout(resolve, wait));
	}
}

let isWatching = false;

export async function watchQuestions() {
	if (isWatching) return;
	isWatching = true;
	/** @param {T.ListedQuestion | null} question */
	const changed = (question) => {
		showCount();
		for (const handler of handlers) handler(question);
	};
	const load = async () => {
		const { questions } = await allQuestions();
		const known = new Map(open);
		open.clear();
		loading.clear();
		for (const listed of questions) {
			if (!listed.is_open) continue;
			const body = listed.body ?? known.get(listed.id)?.body ?? null;
			addOpen({ ...listed, body }, () => body || changed(listed));
		}
		changed(null);
	};
	await follow(new AbortController().signal, load, ({ event, data }, watched) => {
		if (event !== 'question') return;
		const isNew = !open.has(data.id);
		if (data.is_open) {
			addOpen({ ...data, body: data.body ?? open.get(data.id)?.body ?? null }, () => {
				const question = /** @type {T.Question} */ (open.get(data.id));
				if (isNew && !watched) notify(question);
				changed(question);
			});
			return;
		}
		const wasLoading = loading.delete(data.id);
		if (open.delete(data.id) || wasLoading) changed(data);
	}).catch(() => {});
}
