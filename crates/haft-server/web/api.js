// Requests to the server. In an exported session the answers come from the file itself.
/** @import * as T from './types.js' */

import { parseJson } from './json.js';
import { recorded } from './recorded.js';
import { getToken } from './token.js';

const BASE = '/api/v1';
/** Rows per part of a list. */
export const PAGE = 200;
const CHANGES_PAGE = 1000;

/** A request that the server refused or that did not reach it (status 0). */
export class ApiError extends Error {
	/** @param {number} status @param {string} message @param {any} [details] */
	constructor(status, message, details) {
		super(message);
		this.status = status;
		this.details = details;
	}
}

/** @type {() => void} */
let onRefused = () => {};

/** Sets what happens when the token is refused.
 * @param {() => void} action */
export function whenRefused(action) {
	onRefused = action;
}

/** @param {string} path @param {AbortSignal} [signal] @param {unknown} [body] @returns {Promise<Response>} */
async function send(path, signal, body) {
	/** @type {Record<string, string>} */
	const headers = { Authorization: `Bearer ${getToken()}` };
	if (body !== undefined) headers['Content-Type'] = 'application/json';
	const method = body === undefined ? 'GET' : 'POST';
	let response;
	try {
		response = await fetch(BASE + path, {
			method,
			headers,
			signal,
			body: body === undefined ? null : JSON.stringify(body),
			cache: 'no-store',
		});
	} catch (error) {
		if (signal?.aborted) throw error;
		throw new ApiError(0, 'Cannot reach the server. Restart haft serve; this page reconnects by itself.');
	}
	if (response.ok) return response;
	if (response.status === 401) onRefused();
	const answer = await response.json().catch(() => null);
	throw new ApiError(
		response.status,
		answer?.error?.message ?? `The server answered with status ${response.status}.`,
		answer?.error?.details,
	);
}

/** @param {string} path @param {AbortSignal} [signal] @returns {Promise<any>} */
async function get(path, signal) {
	if (recorded) return recorded.get(BASE + path);
	return parseJson(await (await send(path, signal)).text());
}

/** @param {string} path @param {unknown} body @param {AbortSignal} [signal] @returns {Promise<any>} */
const post = async (path, body, signal) => parseJson(await (await send(path, signal, body)).text());

/** The query of a URL: values in the order given, without empty ones. Exports rely on this form.
 * @param {Record<string, string | number | boolean | null | undefined>} values */
function query(values) {
	const parts = Object.entries(values).filter(([, value]) => value || value === 0);
	return parts.length
		? `?${parts.map(([key, value]) => `${key}=${encodeURIComponent(value === true ? 1 : (value ?? ''))}`).join('&')}`
		: '';
}

const id = encodeURIComponent;

/** @returns {Promise<T.Meta>} */
export const meta = () => get('/meta');

/** @param {AbortSignal} signal @returns {Promise<T.Now>} */
export const now = (signal) => get('/now', signal);

/** @returns {Promise<{questions: T.ListedQuestion[]}>} */
export const questions = () => get('/questions');

/** @param {number} question @returns {Promise<T.Question>} */
export const question = (question) => get(`/questions/${question}`);

/** @param {{q?: string, workspace?: string, before?: string | null}} which @param {AbortSignal} [signal] @returns {Promise<T.SessionList>} */
export const sessions = ({ q, workspace, before }, signal) => get(`/sessions${query({ q, workspace, before, limit: PAGE })}`, signal);

/** @param {string} session @param {AbortSignal} [signal] @returns {Promise<T.SessionDetail>} */
export const session = (session, signal) => get(`/sessions/${id(session)}`, signal);

/** @typedef {{session?: string, workspace?: string, text?: string, tool?: string, failed?: boolean, changed?: boolean}} CallFilter */

/** @param {CallFilter} filter @param {number | null} from the `next` of the part before @param {AbortSignal} [signal]
 * @param {boolean} [isOldestFirst] @returns {Promise<T.CallList>} */
export function calls(filter, from, signal, isOldestFirst = false) {
	const { session, workspace, text, tool, failed, changed } = filter;
	if (recorded) return recorded.calls(BASE, filter, isOldestFirst);
	const path = session ? `/sessions/${id(session)}/calls` : '/calls';
	const order = isOldestFirst ? { after: from ?? 0 } : { before: from };
	return get(path + query({ workspace, ...order, limit: PAGE, text, tool, failed, changed }), signal);
}

/** @param {string} session @param {number} after @param {AbortSignal} signal @param {number} [limit] @returns {Promise<T.MessageList>} */
export const messages = (session, after, signal, limit = PAGE) =>
	get(`/sessions/${id(session)}/messages${query({ after: after || null, limit })}`, signal);

/** @param {number} call @param {AbortSignal} [signal] @returns {Promise<T.Call>} */
export const call = (call, signal) => get(`/calls/${call}`, signal);

/** @param {number} call @param {number} offset @param {string} path @param {AbortSignal} signal @returns {Promise<T.ChangeList>} */
export const changes = (call, offset, path, signal) =>
	get(changesPath(call, offset, path), signal);

/** @param {number} call @param {number} offset @param {string} [path] */
const changesPath = (call, offset, path) => `/calls/${call}/changes${query({ offset: offset || null, limit: CHANGES_PAGE, path })}`;

/** @param {number} call @param {number} from @param {AbortSignal} signal @returns {Promise<T.LiveOutput>} */
export const output = (call, from, signal) => get(`/calls/${call}/output${query({ from })}`, signal);

/** @param {T.PathChange} change @param {string} workspace @param {AbortSignal} signal @returns {Promise<T.FileDiff>} */
export function diff(change, workspace, signal) {
	const before = change.before.hash;
	const after = change.after.hash;
	return get(`/diff${query({ path: change.moved_to ?? change.path, before, after, workspace })}`, signal);
}

const IMAGE = /^image\/(png|jpeg|gif|webp)$/;

/** An object URL of an image, which the caller revokes; `null` if it is not an image. Its bytes may be only in the folder.
 * @param {string} hash @param {T.PathChange} change @param {string} workspace @param {AbortSignal} signal */
export async function image(hash, change, workspace, signal) {
	const path = `/blobs/${id(hash)}`;
	const blob = recorded
		? await recorded.blob(BASE + path)
		: await (await send(path + query({ path: change.moved_to ?? change.path, workspace }), signal)).blob();
	return IMAGE.test(blob.type) ? URL.createObjectURL(blob) : null;
}

/** @param {{workspace?: string, session?: string, until?: number, path?: string}} which @param {number} offset @param {AbortSignal} signal
 * @returns {Promise<T.Files>} */
export function files({ workspace, session, until, path }, offset, signal) {
	if (recorded && until) return recorded.filesUntil(BASE, session ?? '', until, changesPath);
	return get(`/files${query({ workspace, session, until, path, offset: offset || null, limit: CHANGES_PAGE })}`, signal);
}

/** @param {number} question @param {T.Answer} answer @returns {Promise<T.Answered>} */
export const answer = (question, answer) => post(`/questions/${question}/answer`, answer);

/** @param {T.UndoRequest} request @param {AbortSignal} signal @returns {Promise<T.UndoPlan>} */
export const undoPreview = (request, signal) => post('/undo/preview', request, signal);

/** @param {T.UndoRequest} request @returns {Promise<T.UndoDone>} */
export const undo = (request) => post('/undo', request);

/** @param {string} workspace @param {AbortSignal} signal @returns {Promise<T.RuleList>} */
export const rules = (workspace, signal) => get(`/rules${query({ workspace })}`, signal);

/** @param {'' | '/remove'} what @param {T.RuleChange} change @returns {Promise<{rule: string, file: string}>} */
export const changeRules = (what, change) => post(`/rules${what}`, change);

/** @param {string} workspace @param {string} tool @param {unknown} input @returns {Promise<T.Explained>} */
export const explain = (workspace, tool, input) => post('/rules/explain', { workspace, tool, input });

/** @param {string} workspace @param {AbortSignal} signal @returns {Promise<T.ToolList>} */
export const tools = (workspace, signal) => get(`/tools${query({ workspace })}`, signal);

/** @param {T.NewRun} run @returns {Promise<{session: string}>} */
export const startRun = (run) => post('/runs', run);

/** @param {string} session @param {T.NewMessage} message */
export const prompt = (session, message) => post(`/sessions/${id(session)}/prompt`, message);

/** @param {string} session */
export const interrupt = (session) => post(`/sessions/${id(session)}/interrupt`, {});

const MAX_NAME_CHARS = 60;

/** Downloads the session as a file.
 * @param {string} session @param {string} name */
export async function saveExport(session, name) {
	const blob = await (await send(`/sessions/${id(session)}/export`)).blob();
	const anchor = document.createElement('a');
	anchor.href = URL.createObjectURL(blob);
	const words = name.match(/[\p{L}\p{N}]+/gu) ?? [];
	anchor.download = `haft-${words.join('-').slice(0, MAX_NAME_CHARS)}.html`;
	anchor.click();
	setTimeout(() => URL.revokeObjectURL(anchor.href), 60_000);
}
