// The card of an open question, with what it is about and the buttons that answer it.
/** @import * as T from './types.js' */

import * as api from './api.js';
import { button, fill, form, h, labelled, raw } from './dom.js';
import { Unshown, exact } from './exact.js';
import { subject } from './question-subject.js';
import { mainArgument, questionTitle } from './questions.js';
import { sessionLink } from './session-link.js';
import { can, errorLine, errorText, serverNow } from './state.js';
import { duration } from './text.js';

/** Clicks are ignored for this long after the layout changed, because they may be meant for what was there before. */
const GUARD_MS = 400;
let guardedUntil = 0;
export const guardClicks = () => (guardedUntil = performance.now() + GUARD_MS);

/** Characters of what an answered question was about. */
const MAX_ABOUT_CHARS = 300;

/** The title of a closed question, for which the tool is enough.
 * @param {T.Question} question */
const closedTitle = (question) => (question.body.kind === 'permission' ? question.body.tool : questionTitle(question));

/** Whether what is asked for cannot be undone.
 * @param {T.Question} question */
const isIrreversible = ({ body }) => body.kind === 'host' || (body.kind === 'permission' && body.irreversible === true);

/** @param {T.ChoicesBody} body @param {(answer: T.Answer) => void} send */
function choiceForm(body, send) {
	const groups = body.questions.map((question, at) => {
		const boxes = question.choices.map(({ label }) =>
			h('input', { type: question.several ? 'checkbox' : 'radio', name: `choice-${at}`, value: label }),
		);
		const own = h('input', { type: 'text', autocomplete: 'off' });
		const element = h(
			'fieldset',
			h('legend', question.question),
			question.choices.map(({ label, description }, index) =>
				h('label.choice', boxes[index], h('span', h('b', raw(label)), ' ', raw(description, 'note'))),
			),
			labelled('Another answer', own),
		);
		return { element, values: () => [...boxes.filter((box) => box.checked).map((box) => box.value), own.value.trim()].filter(Boolean) };
	});
	return form(
		'',
		() => {
			const choices = groups.map(({ values }) => values());
			const missing = choices.findIndex((values) => values.length === 0);
			if (missing < 0) send({ answer: 'choices', choices });
			else groups[missing]?.element.querySelector('input')?.focus();
		},
		groups.map(({ element }) => element),
		h('div.answers', h('button.primary.big', 'Send answers')),
	);
}

/** @typedef {{element: HTMLElement, close: (text: string) => void, focus: () => void, allow: () => void, deny: () => void}} Card */

/** @param {T.Question} question @param {boolean} showSession @param {(hadFocus: boolean) => void} onClose @returns {Card} */
export function questionCard(question, showSession, onClose) {
	const { body } = question;
	const status = h('p', { role: 'status', class: 'answered' });
	/** @type {HTMLButtonElement[]} */
	const allowing = [];
	const missing = h(
		'p.warn',
		{ role: 'status' },
		'Read the rest before you allow it. ',
		button('Show the rest', () => showRest(), { class: 'small' }),
	);
	// What is not shown cannot be allowed.
	const update = () => {
		missing.hidden = unshown.isEmpty;
		for (const target of allowing) target.disabled = !unshown.isEmpty;
	};
	const unshown = new Unshown(update);
	const showRest = () => {
		const { first } = unshown;
		// The buttons below are about to move.
		guardClicks();
		first?.focus();
		first?.click();
	};
	const content = h('div.subject', subject(question, unshown));
	const reason = h('input', {
		type: 'text',
		autocomplete: 'off',
		placeholder: 'Reason (optional)',
		'aria-label': 'Reason for a denial',
		title: 'The agent is told the reason.',
		onkeydown: (/** @type {KeyboardEvent} */ event) => {
			if (event.key === 'Enter' && !event.isComposing && !event.repeat) deny();
		},
	});
	const heading = h('bdi', questionTitle(question));
	const wait = h(
		'span',
		showSession && ' · ',
		'waiting for ',
		h('span', { 'data-since': question.asked_at }, duration(Math.max(0, serverNow() - question.asked_at))),
	);
	const actions = h('div.answers');
	const element = h(
		'article.card.question',
		{ 'aria-label': questionTitle(question), tabindex: -1 },
		h(
			'header',
			h('h3', heading),
			h('p.note', showSession && [sessionLink(question.session), ' · ', raw(question.workspace)], wait),
		),
		content,
		status,
		actions,
	);
	let isDone = false;
	let isSending = false;

	/** @param {string} outcome @param {import('./dom.js').Child[]} text */
	const close = (outcome, ...text) => {
		if (isDone) return;
		isDone = true;
		guardClicks();
		element.classList.add('done');
		const hadFocus = element.contains(document.activeElement);
		actions.remove();
		content.remove();
		wait.remove();
		fill(heading, `${outcome}: `, raw(closedTitle(question)));
		const about = body.kind === 'permission' && mainArgument(body).text.slice(0, MAX_ABOUT_CHARS);
		fill(status, text, about && h('div', raw(about, 'code')));
		onClose(hadFocus);
		if (hadFocus) {
			status.tabIndex = -1;
			status.focus({ preventScroll: true });
		}
	};
	/** @param {T.Answer} answer @param {string} outcome @param {import('./dom.js').Child} text */
	const send = async (answer, outcome, text) => {
		if (isDone || isSending || performance.now() < guardedUntil) return;
		isSending = true;
		// The buttons are not disabled, because they would lose the focus to the next question.
		element.setAttribute('aria-busy', 'true');
		try {
			const { rule_added, rule_failed } = await api.answer(question.id, answer);
			close(
				outcome,
				text,
				rule_added && [' New rule: ', raw(rule_added, 'code')],
				rule_failed && [' The rule could not be added: ', raw(rule_failed)],
			);
		} catch (error) {
			if (error instanceof api.ApiError && error.status === 409) close('Answered', errorText(error));
			else fill(status, errorLine(error));
		}
		isSending = false;
		element.removeAttribute('aria-busy');
	};
	const deny = () => {
		const why = reason.value.trim();
		send({ answer: 'deny', reason: why || null }, 'Denied', why && ['The agent is told: ', raw(why)]);
	};
	/** @param {'once' | 'session' | 'always'} hold */
	const allow = (hold) =>
		send(
			{ answer: 'allow', hold },
			'Allowed',
			{ once: 'Allowed once.', session: 'Allowed for the session.', always: 'Always allowed.' }[hold],
		);
	/** Whether the whole card can be in view at once. */
	const fits = () => element.offsetHeight <= (element.closest('main')?.clientHeight ?? 0);
	/** Whether the card, or the buttons of a long one, was in view; if not, scrolls there. */
	const isInView = () => {
		const shown = fits() ? element : actions;
		const frame = /** @type {Element} */ (element.closest('main')).getBoundingClientRect();
		const { top, bottom } = shown.getBoundingClientRect();
		const isWhole = top >= frame.top - 1 && bottom <= frame.bottom + 1;
		if (!isWhole) shown.scrollIntoView({ block: 'nearest' });
		return isWhole;
	};
	/** Unlike the pointer, a key can press a button that is out of sight. Clicks by keys have no detail. @param {() => void} act */
	const pressed = (act) => (/** @type {MouseEvent} */ event) => {
		if (event.detail > 0 || isInView()) act();
	};
	const denyButton = button(body.kind === 'plan' ? 'Reject' : 'Deny', deny, { class: 'big deny' });
	const allowButton = button(body.kind === 'plan' ? 'Approve' : 'Allow once', pressed(() => allow('once')), { class: 'big primary' });
	const rule = body.kind === 'permission' ? body.rule : null;
	const isKept = rule !== null && can('act');
	if (!can('approve')) fill(status, 'You have read-only access.');
	else if (body.kind === 'choices') {
		content.append(choiceForm(body, (answer) => send(answer, 'Answered', 'Your answers were sent.')));
		fill(actions, denyButton, reason);
		denyButton.textContent = 'Decline';
	} else {
		allowing.push(allowButton);
		if (rule || body.kind === 'host') allowing.push(button('Allow for session', pressed(() => allow('session')), { class: 'big' }));
		if (isKept) allowing.push(button('Always allow', pressed(() => allow('always')), { class: 'big' }));
		fill(actions, missing, allowing, h('span.deny-group', denyButton, reason));
		const held = rule ?? (body.kind === 'host' ? body.entry : null);
		const buttons = isKept ? '“Allow for session” and “Always allow” remember: ' : '“Allow for session” remembers: ';
		if (held) actions.append(h('div.note', buttons, exact(held, 'Rule', unshown)));
	}
	update();

	// A key pressed just when a question arrives must not allow it, and a long card is read from its beginning.
	const focus = () => {
		const isWhole = fits();
		(isWhole && isIrreversible(question) && actions.contains(denyButton) ? denyButton : element).focus({ preventScroll: true });
		element.scrollIntoView({ block: isWhole ? 'nearest' : 'start' });
	};
	// The first key press only moves the focus, so that what is answered is in view.
	const withFocus = (/** @type {HTMLButtonElement} */ target, /** @type {() => void} */ act) => () => {
		if (!actions.contains(target)) element.focus();
		else if (target.disabled) unshown.first?.focus();
		else if (target === document.activeElement || (element.contains(document.activeElement) && !isIrreversible(question) && fits())) {
			if (isInView()) act();
		} else target.focus();
	};
	// The response to this card's own request says more than the event.
	const closeElsewhere = (/** @type {string} */ text) => isSending || close('Closed', text);
	return { element, close: closeElsewhere, focus, allow: withFocus(allowButton, () => allow('once')), deny: withFocus(denyButton, deny) };
}
