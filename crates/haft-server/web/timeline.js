// A slider over calls, with a bar for each of them.
/** @import * as T from './types.js' */

import { h } from './dom.js';

const MAX_BARS = 240;

/** @param {string} label @param {number} min @param {(step: number) => T.CallSummary | undefined} callAt counted from 1, the oldest */
export function timelineSlider(label, min, callAt) {
	const input = h('input', { type: 'range', min, value: min, 'aria-label': label });
	const strip = h('div.strip', { 'aria-hidden': 'true' });
	const point = () => {
		const share = strip.childElementCount / Math.max(1, Number(input.max));
		[...strip.children].forEach((bar, index) => bar.classList.toggle('after', index >= Number(input.value) * share));
	};
	/** Draws the bars of the calls. If there are too many, a bar stands for several. @param {number} count */
	const draw = (count) => {
		input.max = String(Math.max(min, count));
		const each = Math.ceil(count / MAX_BARS);
		strip.replaceChildren();
		for (let from = 1; from <= count; from += each) {
			let changes = 0;
			let isFailed = false;
			for (let step = from; step < from + each; step++) {
				const call = callAt(step);
				changes += call?.change_count ?? 0;
				isFailed ||= ['failed', 'denied', 'interrupted'].includes(call?.state ?? '');
			}
			const bar = h('span', { class: isFailed ? 'failed' : changes ? 'changed' : null });
			bar.style.height = `${Math.min(100, 35 + 25 * Math.log10(1 + changes))}%`;
			strip.append(bar);
		}
		point();
	};
	input.addEventListener('input', point);
	/** Lets the bars be pressed and dragged like the slider. @param {PointerEvent} event */
	const drag = (event) => {
		if (event.buttons !== 1) return;
		const { left, width } = strip.getBoundingClientRect();
		const value = String(Math.round(min + ((event.clientX - left) / width) * (Number(input.max) - min)));
		if (input.value === value) return;
		input.value = value;
		input.dispatchEvent(new Event('input'));
	};
	strip.addEventListener('pointerdown', drag);
	strip.addEventListener('pointermove', drag);
	return { element: h('div.timeline', strip, input), input, draw, point };
}
