// The rules of a folder: which there are, what they matched, and what they would decide.
/** @import * as T from './types.js' */
/** @import {Page} from './state.js' */

import * as api from './api.js';
import { add, button, fill, form, h, labelled, raw, select } from './dom.js';
import { parseJson } from './json.js';
import { callLink, can, decisionLine, effectList, errorLine, errorText, getMeta } from './state.js';
import { plural } from './text.js';
import { workspacePicker } from './workspaces.js';

/** @type {[T.Rule['verdict'], string][]} */
const GROUPS = [
	['deny', 'Deny'],
	['ask', 'Ask'],
	['allow', 'Allow'],
];

/** @param {Page} page @param {string} [workspace] */
export async function showRules(page, workspace = getMeta().workspace) {
	const { main, signal } = page;
	page.heading('Rules');
	main.append(workspacePicker(workspace, (next) => `#/rules/${encodeURIComponent(next)}`, signal));
	const list = h('div');
	const message = h('p', { role: 'status' });
	add(main, list, can('act') && addForm(workspace, change), message, explainForm(workspace, signal));

	/** Changes the rules; returns whether that worked. @param {'' | '/remove'} what @param {T.RuleChange} rule */
	async function change(what, rule) {
		try {
			const done = await api.changeRules(what, rule);
			fill(message, `${what ? 'Removed' : 'Added'}: `, raw(done.rule, 'code'), ` in `, raw(done.file), '.');
			await load();
			return true;
		} catch (error) {
			fill(message, errorLine(error));
			return false;
		}
	}
	async function load() {
		const { mode, rules, warnings } = await api.rules(workspace, signal);
		fill(
			list,
			h('p', 'Mode: ', raw(mode, 'code'), '. Deny rules win over ask rules, and those over allow rules.'),
			warnings.length > 0 &&
				h(
					'div.warn',
					h('h2', 'Problems in the settings'),
					h(
						'ul',
						warnings.map((warning) => h('li', raw(warning))),
					),
				),
			GROUPS.map(([verdict, title]) =>
				group(
					title,
					rules.filter((rule) => rule.verdict === verdict),
				),
			),
		);
	}
	/** @param {string} title @param {T.Rule[]} rules */
	function group(title, rules) {
		return h(
			'section',
			h('h2', title, ' ', h('span.badge', rules.length)),
			rules.length === 0
				? h('p.note', 'None.')
				: h(
						'ul.rules',
						rules.map((rule) =>
							h(
								'li.row',
								{ 'data-nav': true },
								h('span.grow', raw(rule.text, 'code'), h('span.note', raw(rule.origin))),
								h(
									'span.note',
									rule.matched ? `matched ${plural(rule.matched, 'call')}` : 'no recent matches',
									rule.last_matched && [', last ', callLink(rule.last_matched)],
								),
								rule.is_removable &&
									can('act') &&
									removeButton(() => change('/remove', { workspace, verdict: rule.verdict, text: rule.text })),
							),
						),
					),
		);
	}
	await load();
}

/** A button that asks for confirmation before it removes a rule.
 * @param {() => void} remove */
function removeButton(remove) {
	let isSure = false;
	const element = button(
		'Remove',
		() => {
			if (isSure) return remove();
			isSure = true;
			element.textContent = 'Remove: sure?';
			return undefined;
		},
		{ class: 'small' },
	);
	element.addEventListener('blur', () => {
		isSure = false;
		element.textContent = 'Remove';
	});
	return element;
}

/** @param {string} workspace @param {(what: '', rule: T.RuleChange) => Promise<boolean>} change */
function addForm(workspace, change) {
	const verdict = select([
		['allow', 'allow'],
		['ask', 'ask'],
		['deny', 'deny'],
	]);
	const text = h('input', { type: 'text', required: true, autocomplete: 'off', placeholder: 'Bash(npm test *)' });
	return h(
		'section',
		h('h2', 'Add a rule'),
		form(
			'bar-top',
			async () => {
				if (await change('', { workspace, verdict: verdict.value, text: text.value.trim() })) text.value = '';
			},
			labelled('Action', verdict),
			labelled('Rule', text, 'grow'),
			h('button.primary', 'Add'),
		),
	);
}

/** What would be decided about a call.
 * @param {string} workspace @param {AbortSignal} signal */
function explainForm(workspace, signal) {
	const tool = select([]);
	const input = h('textarea', { rows: 4, spellcheck: 'false' });
	const answer = h('div', { role: 'status' });
	/** @type {T.ToolList['tools']} */
	let tools = [];
	const example = () => {
		const schema = tools.find(({ name }) => name === tool.value)?.input_schema;
		const names = schema?.required ?? Object.keys(schema?.properties ?? {}).slice(0, 1);
		input.value = JSON.stringify(
			Object.fromEntries(
				names.map((/** @type {string} */ name) => [
					name,
					{ string: '', boolean: false, array: [], object: {} }[String(schema.properties?.[name]?.type)] ?? 0,
				]),
			),
			null,
			2,
		);
	};
	tool.addEventListener('change', example);
	api.tools(workspace, signal).then(
		(found) => {
			tools = found.tools;
			tool.append(...tools.map(({ name }) => h('option', { value: name }, name)));
			example();
		},
		(error) => signal.aborted || fill(answer, errorLine(error)),
	);
	return h(
		'section',
		h('h2', 'Test a call'),
		form(
			'',
			async () => {
				try {
					const found = await api.explain(workspace, tool.value, parseJson(input.value));
					fill(answer, decisionLine(found.verdict, found.reason, found.rule), effectList(found.effects));
				} catch (error) {
					fill(answer, h('p.error', error instanceof SyntaxError ? `The arguments are not JSON: ${error.message}` : errorText(error)));
				}
			},
			labelled('Tool', tool),
			labelled('Arguments as JSON', input),
			h('p.actions', h('button.primary', 'Test')),
		),
		answer,
	);
}
