// What a question is about: a person sees everything that would run or change before allowing it.
/** @import * as T from './types.js' */
/** @import {Unshown} from './exact.js' */

import { textDiff } from './diff.js';
import { button, h } from './dom.js';
import { exact, exactText } from './exact.js';
import { markdown } from './markdown.js';
import { mainArgument } from './questions.js';
import { jsonText } from './state.js';
import { capitalised, plural, size } from './text.js';

const MAX_EFFECTS = 30;
const MAX_CHANGES = 20;
const MAX_ARGUMENTS = 20;

/** The command, address or changes that a question is about.
 * @param {T.Question} question @param {Unshown} unshown is told what is not shown yet */
export function subject({ body }, unshown) {
	switch (body.kind) {
		case 'permission':
			return permission(body, unshown);
		case 'host':
			return [exactText(body.command, 'Command', unshown), h('p', 'It would reach ', exact(`${body.host}:${body.port}`, 'Host', unshown), '.')];
		case 'plan':
			return [
				markdown(body.plan ?? 'The plan is not known.', unshown),
				body.allow.length > 0 &&
					h(
						'div',
						'It asks to be allowed:',
						some(
							body.allow,
							MAX_EFFECTS,
							([tool, use]) => h('div', exact(`${tool} (${use})`, 'Permission', unshown)),
							unshown,
							'permission',
						),
					),
			];
		default:
			return [];
	}
}

/** @param {T.PermissionBody} body @param {Unshown} unshown */
function permission(body, unshown) {
	const { name, text } = mainArgument(body);
	const effects = body.effects.filter((line) => line !== `runs ${text}`);
	const hasChanges = body.changes.length > 0 && body.changes.every(isWhole);
	const why = withoutRepeated(body.reason, hasChanges ? null : text, effects);
	const reason =
		(why || body.asked_by) &&
		h(
			'p',
			why && exact(capitalised(why), 'Reason', unshown, ''),
			why && body.asked_by && ': ',
			body.asked_by && exact(body.asked_by, 'Rule', unshown),
		);
	const list =
		effects.length > 0 &&
		h(
			'div.effects',
			some(effects, MAX_EFFECTS, (effect) => h('div', exact(capitalised(effect), 'Effect', unshown, '')), unshown, 'effect'),
		);
	const unknown = body.changes_unknown && h('p.note', 'What it would change is not known: ', exact(body.changes_unknown, 'Reason', unshown, ''));
	const changes = body.changes.length > 0 && some(body.changes, MAX_CHANGES, (change) => proposed(change, unshown), unshown, 'change');
	if (hasChanges)
		return [changes, list, reason, h('details', h('summary', 'All arguments'), exactText(jsonText(body.input), 'Arguments'))];
	return [changes, name && exactText(text, 'What would run', unshown), otherArguments(body.input, name, unshown), unknown, list, reason];
}

/** The reason for a question, without its last part if that repeats the command or an effect.
 * @param {string} reason @param {string | null} text the main argument, if it is shown @param {string[]} effects */
function withoutRepeated(reason, text, effects) {
	const said = effects.flatMap((line) => [line.replace(/^writes /, 'it would change '), line.replace(/^reaches /, 'it would reach ')]);
	if (text !== null) said.push(`it would run: ${text}`);
	const repeated = said.find((last) => reason === last || reason.endsWith(`; ${last}`));
	return repeated === undefined ? reason : reason.slice(0, -repeated.length).replace(/; $/, '');
}

/** The arguments besides the one that is already shown.
 * @param {unknown} input @param {string} shown @param {Unshown} unshown */
function otherArguments(input, shown, unshown) {
	if (!shown) return exactText(jsonText(input), 'Arguments', unshown);
	const others = Object.entries(/** @type {object} */ (input)).filter(([name]) => name !== shown);
	if (others.length === 0) return null;
	return h(
		'div.args',
		some(
			others,
			MAX_ARGUMENTS,
			([name, value]) => h('div', h('span.note', exact(name, 'Name', unshown, '')), exact(jsonText(value), 'Value', unshown)),
			unshown,
			'argument',
		),
	);
}

/** Whether all of a change is shown.
 * @param {T.ProposedChange} change */
const isWhole = (change) => change.what === 'setting' || (change.text !== null && !change.text.is_cut);

/** @param {T.ProposedChange} change @param {Unshown} unshown */
function proposed(change, unshown) {
	if (change.what === 'setting')
		return h(
			'div',
			'Setting ',
			exact(change.name, 'Setting', unshown),
			': ',
			exact(jsonText(change.before), 'Old value', unshown),
			' → ',
			exact(jsonText(change.after), 'New value', unshown),
		);
	const sizes = `${change.old_size === null ? 'new' : size(change.old_size)} → ${size(change.new_size)}`;
	return h(
		'div',
		h('p', exact(change.path, 'Path', unshown, 'path'), ' ', h('span.note', sizes)),
		change.text ? textDiff(change.text, unshown) : h('p.note', 'Not text.'),
	);
}

/** The first items, with a button for the others.
 * @template Item
 * @param {Item[]} items @param {number} count @param {(item: Item) => HTMLElement} build @param {Unshown} unshown @param {string} word */
function some(items, count, build, unshown, word) {
	const first = items.slice(0, count).map(build);
	if (items.length <= count) return first;
	const more = button(
		`Not shown: ${plural(items.length - count, `more ${word}`)}. Show them`,
		() => {
			more.replaceWith(...items.slice(count).map(build));
			unshown.set(more, false);
		},
		{ class: 'more' },
	);
	unshown.set(more, true);
	return [...first, more];
}
