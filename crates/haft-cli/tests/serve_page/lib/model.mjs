// A model on this machine, in OpenAI's format: it follows a script and streams its answers.

import { once } from 'node:events';
import { createServer } from 'node:http';

/** Each step is `{text}` or `{call: [tool, input]}`; `hold` is a promise that is waited for in the middle of a text. */
export async function startModel(script) {
	const requests = [];
	let at = 0;
	const server = createServer(async (request, response) => {
		let body = '';
		for await (const chunk of request) body += chunk;
		const asked = body ? JSON.parse(body) : {};
		requests.push(asked);
		response.writeHead(200, { 'content-type': 'text/event-stream' });
		const send = (delta, reason = null) =>
			response.write(
				`data: ${JSON.stringify({
					id: 'c',
					object: 'chat.completion.chunk',
					model: asked.model,
					choices: [{ index: 0, delta, finish_reason: reason }],
					usage: reason && { prompt_tokens: 1200, completion_tokens: 80, total_tokens: 1280 },
				})}\n\n`,
			);
		// A request without tools asks for something else, such as a title.
		const step = asked.tools?.length ? (script[at++] ?? { text: 'That is all.' }) : { text: 'A title' };
		if (step.text) {
			const half = Math.ceil(step.text.length / 2);
			send({ role: 'assistant', content: step.text.slice(0, half) });
			await step.hold;
			send({ content: step.text.slice(half) });
		}
		if (step.call) {
			const [name, input] = step.call;
			const call = { index: 0, id: `call_${at}`, type: 'function', function: { name, arguments: JSON.stringify(input) } };
			send({ tool_calls: [call] });
		}
		send({}, step.call ? 'tool_calls' : 'stop');
		response.end('data: [DONE]\n\n');
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	server.unref();
	const url = `http://127.0.0.1:${server.address().port}`;
	const settings = `[model]\nprovider = "compatible"\nname = "tiny"\nwire = "openai-chat"\nbase_url = "${url}"\n`;
	return { settings, requests };
}
