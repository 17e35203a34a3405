// Builds elements. Text becomes text nodes and nothing else, so that no content can become markup.

import { plain, plural, shown } from './text.js';

/** @typedef {Node | string | number | null | undefined | false | Child[]} Child */

/** Longer texts belong in an `Output`. */
const MAX_CHARS = 5_000;
const TEXT_ATTRIBUTES = new Set(['title', 'aria-label', 'placeholder', 'alt', 'label']);

/** @param {Node} parent @param {Child[]} children */
export function add(parent, ...children) {
	for (const child of children) {
		if (Array.isArray(child)) add(parent, ...child);
		else if (child instanceof Node) parent.appendChild(child);
		else if (child !== null && child !== undefined && child !== false) parent.appendChild(shown(String(child)));
	}
}

/** An element: `h('p.note', { title: '…' }, child, …)`. Keys that begin with `on` are event handlers; `false` and `null` leave
 * an attribute out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K | `${K}.${string}`} name the tag and classes @param {[Record<string, any>, ...Child[]] | Child[]} rest
 * @returns {HTMLElementTagNameMap[K]} */
export function h(name, ...rest) {
	const [tag = '', ...classes] = name.split('.');
	const element = /** @type {HTMLElementTagNameMap[K]} */ (document.createElement(tag));
	if (classes.length) element.className = classes.join(' ');
	const [first] = rest;
	const hasProps = typeof first === 'object' && first !== null && !(first instanceof Node) && !Array.isArray(first);
	for (const [key, value] of hasProps ? Object.entries(/** @type {Record<string, any>} */ (first)) : []) {
		if (value === false || value === null || value === undefined) continue;
		if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
		else if (value === true) element.setAttribute(key, '');
		else element.setAttribute(key, TEXT_ATTRIBUTES.has(key) ? plain(String(value)) : String(value));
	}
	add(element, .../** @type {Child[]} */ (hasProps ? rest.slice(1) : rest));
	return element;
}

/** Replaces what is in an element.
 * @param {Element} parent @param {Child[]} children */
export function fill(parent, ...children) {
	parent.replaceChildren();
	add(parent, ...children);
}

/** Replaces what is in an element; a link that has the focus keeps it, if it is there again.
 * @param {Element} parent @param {Child[]} children */
export function refill(parent, ...children) {
	const focus = parent.contains(document.activeElement) ? document.activeElement?.getAttribute('href') : null;
	fill(parent, ...children);
	const links = focus ? [...parent.querySelectorAll('a')] : [];
	links.find((anchor) => anchor.getAttribute('href') === focus)?.focus({ preventScroll: true });
}

/** A text from elsewhere within a line, isolated so that its direction cannot affect what is around it.
 * @param {string} text @param {string} [className] */
export const raw = (text, className) =>
	h(
		'bdi',
		{ class: className },
		text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)} … and ${plural(text.length - MAX_CHARS, 'more character')}` : text,
	);

/** @param {string} label @param {(event: MouseEvent) => void} onclick @param {Record<string, any>} [props] */
export const button = (label, onclick, props) => h('button', { type: 'button', onclick, ...props }, label);

/** @param {string} href @param {Child[]} children */
export const link = (href, ...children) => h('a', { href }, ...children);

/** A label with its field.
 * @param {string} label @param {HTMLElement} field @param {string} [className] */
export const labelled = (label, field, className) => h('label', { class: `field ${className ?? ''}` }, h('span', label), field);

/** A list of choices.
 * @param {[string, string][]} options value and label @param {Record<string, any>} [props] */
export const select = (options, props) =>
	h(
		'select',
		props ?? {},
		options.map(([value, label]) => h('option', { value }, label)),
	);

/** Returns a function that runs the action once in the next frame, however often it is called; also in hidden tabs.
 * @param {() => void} action @param {number} [ms] a delay in place of the next frame */
export function batched(action, ms = 0) {
	let waits = false;
	const run = () => {
		waits = false;
		action();
	};
	return () => {
		if (waits) return;
		waits = true;
		if (ms || document.hidden) setTimeout(run, ms || 200);
		else requestAnimationFrame(run);
	};
}

/** Returns a function that runs the action once it has not been called for a while.
 * @param {() => void} action @param {number} [ms] */
export function debounced(action, ms = 250) {
	let timer = 0;
	return () => {
		clearTimeout(timer);
		timer = setTimeout(action, ms);
	};
}

/** A form that the page itself handles.
 * @param {string} className @param {() => unknown} onSubmit @param {Child[]} children */
export function form(className, onSubmit, ...children) {
	const handle = (/** @type {Event} */ event) => {
		event.preventDefault();
		onSubmit();
	};
	return h('form', { class: className, onsubmit: handle }, ...children);
}

/** @param {string} label @param {() => void} onchange */
export function checkbox(label, onchange) {
	const input = h('input', { type: 'checkbox', onchange });
	return { input, element: h('label.check', input, label) };
}

/** Reads or sets a choice that this browser remembers, if it has storage.
 * @param {string} key @param {string} [value] the new value */
export function choice(key, value) {
	try {
		if (value !== undefined) localStorage.setItem(key, value);
		return localStorage.getItem(key) ?? '';
	} catch {
		return '';
	}
}
