// The frame of the page: the token, routes, navigation, keys.
/** @import {Page} from './state.js' */

// Imported first, because it takes the token out of the address.
import { getToken } from './token.js';
import * as api from './api.js';
import { add, button, fill, h } from './dom.js';
import { changeEntry, replaceHash, restore } from './history.js';
import { onStreamState, start } from './live.js';
import { showLogin } from './login.js';
import { setTitle, watchQuestions } from './questions.js';
import { recorded } from './recorded.js';
import { errorLine, getMeta, setMeta } from './state.js';
import { setUpKeys } from './keys.js';
import { setUpTheme } from './theme.js';
import { showCall } from './view-call.js';
import { showChat } from './view-chat.js';
import { showFiles } from './view-files.js';
import { showNow } from './view-now.js';
import { showReplay } from './view-replay.js';
import { showRules } from './view-rules.js';
import { showSession } from './view-session.js';
import { showSessions } from './view-sessions.js';
import { showUndo } from './view-undo.js';

/** @type {Record<string, (page: Page, ...parts: string[]) => Promise<void> | void>} */
const VIEWS = {
	now: showNow,
	sessions: showSessions,
	session: showSession,
	call: showCall,
	files: showFiles,
	undo: showUndo,
	replay: showReplay,
	chat: showChat,
	rules: showRules,
};

/** The views of an exported session. */
const RECORDED = ['session', 'call', 'files', 'replay', 'chat'];

const LINKS = [
	['now', 'Now'],
	['sessions', 'Sessions'],
	['chat', 'Chat'],
	['files', 'Files'],
	['undo', 'Undo'],
	['rules', 'Rules'],
];

const main = /** @type {HTMLElement} */ (document.getElementById('main'));
const nav = /** @type {HTMLElement} */ (document.getElementById('nav'));
const connection = /** @type {HTMLElement} */ (document.getElementById('connection'));
let leave = new AbortController();
let isStarted = false;
let isLogin = false;
/** @type {Page | null} */
let current = null;

/** Makes the page for a view, replacing the last one.
 * @param {string} [query] */
function newPage(query = '') {
	leave.abort();
	leave = new AbortController();
	main.replaceChildren();
	main.scrollTop = 0;
	/** @type {Page} */
	const page = {
		main,
		signal: leave.signal,
		list: null,
		keys: {},
		query: new URLSearchParams(query),
		remember: (path, values = {}) => {
			if (page.signal.aborted) return;
			const filled = Object.entries(values).filter(([, value]) => value);
			const text = new URLSearchParams(/** @type {[string, string][]} */ (filled)).toString();
			replaceHash(`#${path}${text && `?${text}`}`);
		},
		heading: (title, ...more) => {
			setTitle(`${title} · Haft`);
			const heading = h('h1', { tabindex: -1 }, h('bdi', title));
			add(main, h('div.heading', heading, more));
			if (isStarted) heading.focus({ preventScroll: true });
			return heading;
		},
	};
	current = page;
	return page;
}

async function route() {
	const place = changeEntry(main);
	const home = recorded ? `session/${encodeURIComponent(recorded.session)}` : 'now';
	const [path = '', query] = (location.hash.replace(/^#\//, '') || home).split('?');
	const [name = '', ...parts] = path.split('/').map(decode);
	const page = newPage(query);
	main.className = `view-${name}`;
	const section = sectionOf(name, parts);
	for (const anchor of nav.querySelectorAll('a'))
		anchor.getAttribute('href') === `#/${section}` ? anchor.setAttribute('aria-current', 'page') : anchor.removeAttribute('aria-current');
	try {
		const view = Object.hasOwn(VIEWS, name) ? VIEWS[name] : undefined;
		if (!view || (recorded && !RECORDED.includes(name))) throw new Error('There is no such view.');
		await view(page, ...parts);
		if (place && !page.signal.aborted) restore(main, place, page.signal);
	} catch (error) {
		if (page.signal.aborted) return;
		if (!main.querySelector('h1')) page.heading('Not shown');
		add(main, errorLine(error), h('p', button('Try again', route)));
	}
	isStarted = true;
}

/** The part of the main navigation that a view belongs to.
 * @param {string} name @param {string[]} parts */
const sectionOf = (name, parts) =>
	['session', 'replay', 'call'].includes(name) || parts[0] === 'session' || (name === 'chat' && parts[0]) ? 'sessions' : name;

/** @param {string} part */
function decode(part) {
	try {
		return decodeURIComponent(part);
	} catch {
		return part;
	}
}

function login() {
	// Several requests can be refused at once.
	if (isLogin) return;
	isLogin = true;
	isStarted = true;
	nav.hidden = true;
	connection.hidden = true;
	const page = newPage();
	showLogin(page, getToken() !== '', () => {
		isLogin = false;
		boot();
	});
}

async function boot() {
	if (!recorded && !getToken()) return login();
	try {
		const meta = await api.meta();
		// An exported session is read-only.
		setMeta(recorded ? { ...meta, role: 'view' } : meta);
	} catch (error) {
		if (error instanceof api.ApiError && error.status === 401) return;
		const page = newPage();
		const isAnswer = error instanceof api.ApiError && error.status > 0;
		page.heading(isAnswer ? 'The page cannot be shown' : 'The server does not answer');
		add(main, errorLine(error), h('p', button('Try again', boot)));
		if (!isAnswer) setTimeout(() => page.signal.aborted || boot(), 2000);
		return;
	}
	isLogin = false;
	nav.hidden = recorded !== null;
	connection.hidden = false;
	if (!recorded) {
		start(getMeta());
		watchQuestions();
	}
	await route();
}

function frame() {
	fill(
		nav,
		LINKS.map(([name, label]) =>
			h('a', { href: `#/${name}` }, label, name === 'now' && h('span', { id: 'question-count', class: 'count' })),
		),
	);
	document.getElementById('skip')?.addEventListener('click', () => main.focus());
	if (recorded) {
		fill(connection, 'Exported session');
		document.querySelector('.brand')?.setAttribute('href', '#/');
	} else {
		onStreamState((state) => {
			const [sign, word] = {
				live: ['●', 'Live'],
				connecting: ['◌', 'Connecting'],
				waiting: ['◌', 'Reconnecting'],
				refused: ['✕', 'Signed out'],
			}[state] ?? ['', ''];
			connection.className = state;
			fill(connection, h('span', { 'aria-hidden': 'true' }, sign), h('span.word', ` ${word}`));
			if (state === 'refused' && isStarted) login();
		});
	}
	setUpTheme();
	setUpKeys(() => current);
	addEventListener('hashchange', () => {
		// An address with a token was pasted into this tab.
		if (location.hash.startsWith('#token=')) location.reload();
		else if (!nav.hidden || recorded) route();
	});
}

api.whenRefused(login);
frame();
boot();
