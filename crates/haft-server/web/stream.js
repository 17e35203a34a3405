// The event stream, read with fetch because EventSource cannot send headers. Used in the shared worker, or in a tab without one.
/** @import {StreamState, StreamedEvent} from './types.js' */

const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 8_000;
/** A longer silence means that the connection is lost: the server sends a comment every 15 seconds. */
const SILENCE_MS = 40_000;
const MAX_EVENT_CHARS = 16 * 1024 * 1024;

/** Splits a text stream into events. */
export class EventParser {
	#buffer = '';
	#event = '';
	#data = '';
	#id = '';
	/** Whether the current event is too long and is left out. */
	#isTooLong = false;

	/** @param {string} chunk @param {(event: StreamedEvent) => void} emit */
	feed(chunk, emit) {
		const text = this.#buffer + chunk;
		let at = 0;
		for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', at)) {
			this.#line(text.slice(at, text[end - 1] === '\r' ? end - 1 : end), emit);
			at = end + 1;
		}
		this.#buffer = text.slice(at);
		if (this.#buffer.length + this.#data.length <= MAX_EVENT_CHARS) return;
		this.#isTooLong = true;
		// The rest of the line is data as well.
		this.#buffer = 'data:';
		this.#data = '';
	}

	/** @param {string} line @param {(event: StreamedEvent) => void} emit */
	#line(line, emit) {
		if (line === '') {
			// The page reloads everything instead.
			if (this.#isTooLong) emit({ event: 'reset', id: 0, data: JSON.stringify({ position: this.#id ? Number(this.#id) : undefined }) });
			else if (this.#data) emit({ event: this.#event || 'message', id: Number(this.#id) || 0, data: this.#data });
			this.#event = this.#data = this.#id = '';
			this.#isTooLong = false;
			return;
		}
		const colon = line.indexOf(':');
		const name = colon < 0 ? line : line.slice(0, colon);
		const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
		if (name === 'event') this.#event = value;
		else if (name === 'id') this.#id = value;
		else if (name === 'data' && !this.#isTooLong) this.#data += this.#data ? `\n${value}` : value;
	}
}

/** Keeps one stream open until it is closed. */
export class EventStream {
	#closed = new AbortController();
	#wait = FIRST_WAIT_MS;
	#wake = () => {};
	#reading = new AbortController();
	#again = false;

	/**
	 * @param {() => string} token @param {number} position of the last known event
	 * @param {(event: StreamedEvent) => void} onEvent @param {(state: StreamState) => void} onState
	 */
	constructor(token, position, onEvent, onState) {
		this.position = position;
		this.token = token;
		this.onEvent = onEvent;
		this.onState = onState;
		this.#run();
	}

	close() {
		this.#closed.abort();
		this.#wake();
	}

	/** Retries now instead of at the end of a wait. */
	retry() {
		this.#wait = FIRST_WAIT_MS;
		this.#wake();
	}

	/** Connects again, with the current token. */
	reconnect() {
		this.#again = true;
		this.#reading.abort();
		this.retry();
	}

	async #run() {
		this.onState('connecting');
		while (!this.#closed.signal.aborted) {
			this.#again = false;
			const refused = await this.#read().catch(() => false);
			if (this.#closed.signal.aborted) return;
			if (this.#again) continue;
			this.onState(refused ? 'refused' : 'waiting');
			await new Promise((resolve) => {
				this.#wake = () => resolve(null);
				if (!refused) setTimeout(resolve, this.#wait * (0.75 + Math.random() / 2));
			});
			this.#wait = Math.min(this.#wait * 2, MAX_WAIT_MS);
		}
	}

	/** Reads until the stream ends; returns whether the token was refused. */
	async #read() {
		const reading = (this.#reading = new AbortController());
		const signal = AbortSignal.any([this.#closed.signal, reading.signal]);
		let timer = setTimeout(() => reading.abort(), SILENCE_MS);
		try {
			const headers = { Authorization: `Bearer ${this.token()}`, Accept: 'text/event-stream' };
			const response = await fetch(`/api/v1/events?after=${this.position}`, { headers, signal, cache: 'no-store' });
			if (response.status === 401) return true;
			if (!response.ok || !response.body) return false;
			this.onState('live');
			this.#wait = FIRST_WAIT_MS;
			const parser = new EventParser();
			const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
			for (;;) {
				const { done, value } = await reader.read();
				if (done) return false;
				clearTimeout(timer);
				timer = setTimeout(() => reading.abort(), SILENCE_MS);
				parser.feed(value, (event) => this.#take(event));
			}
		} finally {
			clearTimeout(timer);
			reading.abort();
		}
	}

	/** @param {StreamedEvent} event */
	#take(event) {
		if (event.event === 'reset') this.position = JSON.parse(event.data).position ?? this.position;
		else if (event.id) {
			if (event.id <= this.position) return;
			this.position = event.id;
		}
		this.onEvent(event);
	}
}
