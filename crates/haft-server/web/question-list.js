// The cards of open questions, with the keys that answer them.
/** @import * as T from './types.js' */
/** @import {Page} from './state.js' */
/** @import {Card} from './question-card.js' */

import { add, h } from './dom.js';
import { guardClicks, questionCard } from './question-card.js';
import { onQuestions, openQuestions, questionTitle } from './questions.js';

/** @param {Page} page @param {string} session whose questions are shown; if empty, those of all @param {() => void} onChange */
export function questionList(page, session, onChange) {
	const element = h('div.cards');
	const answered = h('div.cards');
	const announce = h('p.sr', { 'aria-live': 'polite' });
	/** @type {Map<number, Card>} */
	const cards = new Map();
	let isShown = false;
	/** The question that was answered here last. */
	let last = 0;
	const sync = () => {
		if (!isShown) return;
		const open = new Map(openQuestions(session).map((question) => [question.id, question]));
		for (const [id, card] of cards) if (!open.has(id)) card.close(WITHDRAWN);
		for (const [id, question] of open) {
			if (cards.has(id)) continue;
			const card = questionCard(question, !session, (hadFocus) => {
				if (hadFocus) last = id;
				// Answered cards are kept apart from the open ones.
				answered.prepend(card.element);
				onChange();
			});
			card.element.setAttribute('data-nav', '');
			cards.set(id, card);
			// Cards are added at the end, so that the others stay where they are.
			guardClicks();
			element.append(card.element);
			announce.textContent = questionTitle(question);
		}
		onChange();
		// The focus is moved only if it is nowhere in particular.
		if (document.activeElement === document.body || document.activeElement?.tagName === 'H1') current()?.focus();
	};
	onQuestions((question) => {
		if (question && !question.is_open) cards.get(question.id)?.close(answeredBy(question));
		sync();
	}, page.signal);
	const openCards = () => [...cards].filter(([, card]) => !card.element.classList.contains('done'));
	/** The card with the focus, else the one after the last that was answered, else the first. */
	const current = () => {
		const open = openCards();
		const found =
			open.find(([, card]) => card.element.contains(document.activeElement)) ?? open.find(([id]) => id > last) ?? open[0];
		return found?.[1];
	};
	Object.assign(page.keys, { a: () => current()?.allow(), d: () => current()?.deny() });
	add(element, announce);
	const show = () => {
		isShown = true;
		sync();
	};
	return { element, answered, show, count: () => openCards().length };
}

const WITHDRAWN = 'Withdrawn: the agent is no longer waiting.';

/** @param {T.ListedQuestion} question */
export const answeredBy = (question) => (question.answered_by ? `Answered by ${question.answered_by}.` : WITHDRAWN);
