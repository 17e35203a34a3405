// The conversation of a run: read it, start it, continue it.
/** @import * as T from './types.js' */
/** @import {Page} from './state.js' */

import * as api from './api.js';
import { add, batched, button, fill, form, h, labelled, link, raw, select } from './dom.js';
import { follow } from './live.js';
import { markdown } from './markdown.js';
import { outputOf } from './output.js';
import { questionList } from './question-list.js';
import { sessionName } from './session-link.js';
import { can, errorText, getMeta, sessionHeading, stateChip, timeOf } from './state.js';
import { plural, size } from './text.js';

const MODES = [
	['', 'From settings'],
	['scoped', 'scoped'],
	['default', 'default'],
	['acceptEdits', 'accept edits'],
	['plan', 'plan'],
	['dontAsk', 'do not ask'],
];
/** How often a growing answer is drawn; each time, all of it is parsed again. */
const DRAW_MS = 100;
const MAX_ATTACHED_BYTES = 10_000_000;
const RECENT = 10;
/** Characters of a new message that screen readers announce; the rest is read in the conversation. */
const MAX_SPOKEN_CHARS = 1_000;
/** New messages that are announced at once; earlier ones are skipped. */
const MAX_SPOKEN_MESSAGES = 10;
/** How the server puts attached texts into a message. */
const ATTACHED = /^(?=<file name=".*">$)/m;
const [ATTACHED_START, ATTACHED_END] = ['<file name="', '\n</file>'];

/** The conversation that was last started here: its message field gets the focus. */
let startedHere = '';

/** @param {Page} page @param {string} [id] */
export async function showChat(page, id) {
	const { main } = page;
	if (!id) {
		page.heading('New conversation');
		const earlier = h('div');
		add(
			main,
			can('act')
				? composer(null, (session) => {
						startedHere = session;
						location.hash = `#/chat/${encodeURIComponent(session)}`;
					})
				: h('p.empty', 'You have read-only access.'),
			earlier,
		);
		api.sessions({}, page.signal).then(
			({ sessions }) => showEarlier(earlier, sessions.filter(({ has_run, parent }) => has_run && !parent).slice(0, RECENT)),
			() => {},
		);
		return undefined;
	}
	const detail = await api.session(id, page.signal);
	sessionHeading(page, detail.session, 'Chat');
	await conversation(page, detail);
	return undefined;
}

/** Recent conversations to continue.
 * @param {HTMLElement} element @param {T.Session[]} sessions */
function showEarlier(element, sessions) {
	if (sessions.length === 0) return;
	const rows = sessions.map((session) =>
		h(
			'div.row',
			{ 'data-nav': true },
			h('a', { href: `#/chat/${encodeURIComponent(session.id)}` }, raw(sessionName(session), 'name')),
			timeOf(session.started_at),
		),
	);
	add(element, h('h2', 'Recent conversations'), h('div.rows-static', rows));
}

/** @param {Page} page @param {T.SessionDetail} detail */
async function conversation(page, detail) {
	const { main, signal } = page;
	const { id } = detail.session;
	const log = h('div.log', { role: 'log', 'aria-label': 'Conversation', 'aria-live': 'off' });
	const writing = h('div.message.assistant.writing');
	// Not the log itself: what is loaded at first, and the states of calls, would be said as well.
	const spoken = h('div.sr', { 'aria-live': 'polite', 'aria-relevant': 'additions' });
	const waiting = questionList(page, id, () => {});
	const stop = button('Stop', () => api.interrupt(id).catch((error) => (state.textContent = errorText(error))));
	const state = h('span', { role: 'status' });
	const bar = h('p.turn', state, ' ', stop);
	add(main, log, spoken, writing, waiting.answered, waiting.element, bar);
	if (can('act')) {
		const field = composer(detail, () => setBusy(true));
		main.append(field);
		if (startedHere === id) field.querySelector('textarea')?.focus({ preventScroll: true });
	}
	waiting.show();
	/** @type {Set<number>} */
	const seen = new Set();
	/** @type {Map<string, T.CallSummary>} */
	const calls = new Map();
	/** @type {Map<string, HTMLElement>} */
	const chips = new Map();
	let answer = '';
	let answerNext = 0;
	/** How many answers have become messages. */
	let finished = 0;
	/** Parts of answers are applied one after the other. */
	let lastPart = Promise.resolve();
	let after = 0;

	const isAtEnd = () => main.scrollTop + main.clientHeight > main.scrollHeight - 120;
	/** Changes the log, and stays at its end if it was there. @param {() => void} change */
	const atEnd = (change) => {
		const stays = isAtEnd();
		change();
		if (stays) main.scrollTop = main.scrollHeight;
	};
	/** @param {boolean} isBusy */
	const setBusy = (isBusy) => {
		state.textContent = isBusy ? 'Working…' : '';
		stop.hidden = !isBusy || !can('act');
	};
	/** @param {T.CallSummary} call */
	const showCall = (call) => {
		calls.set(call.call_id, call);
		const chip = chips.get(call.call_id);
		if (chip) fill(chip, link(`#/call/${call.id}`, raw(call.tool, 'tool'), ' ', raw(call.about, 'about')), ' ', stateChip(call));
	};
	/** @param {T.Message} message */
	const showMessage = (message) => {
		if (seen.has(message.seq)) return;
		seen.add(message.seq);
		after = Math.max(after, message.seq);
		if (message.role === 'assistant') clearAnswer();
		if (message.role === 'end') setBusy(false);
		else if (message.role === 'user') setBusy(detail.session.is_driven);
		const element = withCalls(message);
		log.append(element);
		if (message.is_cut) showWhole(message, element);
	};
	/** Says a message that has just come, unless it is a person's own.
	 * @param {T.Message} message */
	const speak = ({ seq, role, text, model }) => {
		if (seen.has(seq) || role === 'user') return;
		spoken.append(h('p', [speaker(role, model), text && `: ${text.slice(0, MAX_SPOKEN_CHARS)}`]));
		if (spoken.childElementCount > MAX_SPOKEN_MESSAGES) spoken.firstElementChild?.remove();
	};
	/** @param {T.Message} message */
	const withCalls = (message) => {
		const element = messageElement(message);
		for (const call of message.calls ?? []) {
			const chip = h('p.chip', raw(call.tool, 'tool'), ' ', raw(call.about, 'about'));
			chips.set(call.call_id, chip);
			element.append(chip);
			const known = calls.get(call.call_id);
			if (known) showCall(known);
		}
		return element;
	};
	/** Loads a message of which an event had only the beginning.
	 * @param {T.Message} message @param {HTMLElement} element */
	const showWhole = async (message, element) => {
		const found = await api.messages(id, message.seq - 1, signal, 1).catch(() => null);
		if (signal.aborted) return;
		const whole = found?.messages.find(({ seq }) => seq === message.seq);
		if (whole) return atEnd(() => element.replaceWith(withCalls(whole)));
		const again = button('Load the rest of this message', () => (again.remove(), showWhole(message, element)), { class: 'small' });
		element.append(again);
	};
	const clearAnswer = () => {
		finished++;
		setAnswer('', 0);
	};
	/** @param {string} text @param {number} next */
	const setAnswer = (text, next) => {
		answer = text;
		answerNext = next;
		if (text) setBusy(true);
		drawAnswer();
	};
	/** Loads what is written so far. An answer that is complete is a message. */
	const loadAnswer = async () => {
		const before = finished;
		const found = (await api.session(id, signal).catch(() => null))?.answer;
		if (found && before === finished) setAnswer(`${found.from ? '… ' : ''}${found.text}`, found.next);
	};
	/** @param {T.LiveOutput} part */
	const showAnswer = async (part) => {
		// Each answer begins at 0.
		if (part.from === 0 ? answer.startsWith(part.text) : part.next <= answerNext) return;
		if (part.from === 0) setAnswer(part.text, part.next);
		else if (part.from === answerNext) setAnswer(answer + part.text, part.next);
		else await loadAnswer();
	};
	const drawAnswer = batched(() => atEnd(() => fill(writing, answer && markdown(answer))), DRAW_MS);

	const load = async () => {
		detail = await api.session(id, signal);
		for (let more = true; more;) {
			const found = await api.messages(id, after, signal);
			atEnd(() => found.messages.forEach(showMessage));
			after = found.next;
			more = found.more;
		}
		/** @type {number | null} */
		let before = null;
		do {
			const list = /** @type {T.CallList} */ (await api.calls({ session: id }, before, signal));
			list.calls.forEach(showCall);
			before = list.next;
		} while (before !== null && [...chips.keys()].some((call) => !calls.has(call)));
		setBusy(Boolean(detail.run?.in_turn && detail.session.is_driven));
		// After the messages, because each of them ends an answer.
		if (detail.session.is_driven) await loadAnswer();
		main.scrollTop = main.scrollHeight;
	};
	await follow(signal, load, ({ event, data }) => {
		if (event === 'message' && data.session === id) {
			speak(data.message);
			atEnd(() => showMessage(data.message));
		} else if (event === 'answer' && data.session === id) lastPart = lastPart.then(() => showAnswer(data));
		else if (event === 'call' && data.session === id) showCall(data);
		else if (event === 'driver' && data.session === id) {
			detail.session = { ...detail.session, is_driven: data.is_driven };
			if (!data.is_driven) setBusy(false);
		}
	});
}

/** @param {T.Message['role']} role @param {string} [model] */
const speaker = (role, model) => ({ user: 'You', assistant: model ?? 'Model', note: 'System note', end: 'Done' })[role] ?? role;

/** @param {T.Message} message */
function messageElement(message) {
	const { role, text } = message;
	const who = speaker(role, message.model);
	const cost = [
		message.input_tokens && `${message.input_tokens.toLocaleString('en')} in`,
		message.output_tokens && `${message.output_tokens.toLocaleString('en')} out`,
		message.cost_usd && `$${message.cost_usd.toFixed(4)}`,
	]
		.filter(Boolean)
		.join(' · ');
	return h(
		'article',
		{ class: `message ${role}`, 'data-nav': true },
		h('header', h('b', raw(who)), timeOf(message.at), cost && h('span.note', cost)),
		message.thinking && h('details', h('summary', 'Reasoning'), outputOf(message.thinking, 'Reasoning')),
		role === 'assistant' ? markdown(text) : role === 'user' ? withAttached(text, who) : text && outputOf(text, who),
		message.images && h('p.note', plural(message.images, 'image')),
	);
}

/** A person's message, with attached texts folded.
 * @param {string} text @param {string} label */
function withAttached(text, label) {
	let own = '';
	const files = text.split(ATTACHED).map((part) => {
		const [from, end] = [part.indexOf('\n') + 1, part.lastIndexOf(ATTACHED_END)];
		if (!part.startsWith(ATTACHED_START) || end < from) {
			own += part;
			return null;
		}
		own += part.slice(end + ATTACHED_END.length);
		const [name, content] = [part.slice(ATTACHED_START.length, from - '">\n'.length), part.slice(from, end)];
		return h('details', h('summary', raw(name), `, ${size(new Blob([content]).size)}`), outputOf(content, 'Attached file'));
	});
	return [own.trim() && outputOf(own.trim(), label), files];
}

/** The form for a message that starts or continues a run.
 * @param {T.SessionDetail | null} detail @param {(session: string) => void} done */
function composer(detail, done) {
	const { providers, workspace } = getMeta();
	const chosen =
		providers.find(({ name }) => name === detail?.run?.provider) ?? providers.find(({ is_default }) => is_default) ?? providers[0];
	const ordered = [...providers.filter(({ is_ready }) => is_ready), ...providers.filter(({ is_ready }) => !is_ready)];
	const text = h('textarea', {
		rows: 3,
		required: true,
		placeholder: detail ? 'Continue…' : 'What should the agent do?',
		'aria-label': 'Message',
	});
	const provider = select(ordered.map(({ name, is_ready }) => [name, is_ready ? name : `${name} (no key)`]));
	const model = h('input', { type: 'text', autocomplete: 'off', value: detail?.run?.model ?? chosen?.model ?? '' });
	const folder = h('input', { type: 'text', value: workspace, autocomplete: 'off' });
	const mode = select(/** @type {[string, string][]} */ (MODES));
	const files = h('input', { type: 'file', multiple: true });
	const problem = h('p.error', { role: 'alert' });
	const send = h('button.primary.big', 'Send');
	provider.value = chosen?.name ?? '';
	provider.addEventListener('change', () => (model.value = providers.find(({ name }) => name === provider.value)?.model ?? ''));
	const element = form(
		'composer card',
		async () => {
			send.disabled = true;
			fill(problem);
			try {
				const attachments = await Promise.all([...(files.files ?? [])].map(attachment));
				const message = { prompt: text.value, attachments, ...changed(provider.value, model.value.trim(), detail?.run ?? null) };
				const { session } = detail
					? await api.prompt(detail.session.id, message).then(() => ({ session: detail.session.id }))
					: await api.startRun({ ...message, workspace: folder.value.trim() || undefined, permission_mode: mode.value || undefined });
				text.value = '';
				files.value = '';
				done(session);
			} catch (error) {
				fill(problem, errorText(error));
			}
			send.disabled = false;
		},
		text,
		h(
			'div.bar-top',
			labelled('Provider', provider),
			labelled('Model', model),
			!detail && labelled('Folder', folder),
			!detail && labelled('Permission mode', mode),
			labelled('Files', files),
			send,
		),
		problem,
	);
	text.addEventListener('keydown', (event) => {
		if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
		event.preventDefault();
		element.requestSubmit();
	});
	return element;
}

/** The provider and model, unless the run already has them.
 * @param {string} provider @param {string} model @param {T.Run | null} run */
function changed(provider, model, run) {
	return run?.provider === provider && run.model === model ? {} : { provider: provider || undefined, model: model || undefined };
}

/** @param {File} file @returns {Promise<T.Attachment>} */
async function attachment(file) {
	if (file.size > MAX_ATTACHED_BYTES) throw new Error(`${file.name} is too large: up to 10 MB can be attached.`);
	return new Promise((resolve, reject) => {
		const reader = new FileReader();
		reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
		reader.onload = () => resolve({ name: file.name, data: String(reader.result).replace(/^[^,]*,/, '') });
		reader.readAsDataURL(file);
	});
}
