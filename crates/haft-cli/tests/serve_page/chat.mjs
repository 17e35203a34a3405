// A conversation with a model on this machine: started, followed while it is written, continued, stopped.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { assertQuiet, close, open, person } from './lib/browser.mjs';
import { picture } from './lib/content.mjs';
import { Fixture } from './lib/fixture.mjs';
import { startModel } from './lib/model.mjs';

const fixture = new Fixture();
after(close);

let goOn;
const hold = new Promise((resolve) => (goOn = resolve));
const hostile = 'Look: <img src=x onerror=alert(1)> [here](javascript:alert(2)) <script>alert(3)</script>\n\n```html\n<b>not bold</b>\n```\n';
const model = await startModel([
	{ text: `First half of it.\n\n${'x'.repeat(40)}\n\nSecond half of it.`, hold },
	{ call: ['Bash', { command: 'echo tea > tea.txt' }] },
	{ text: hostile },
	{ call: ['Bash', { command: 'sleep 1000' }] },
	{ text: 'Stopped and asked again.' },
]);
fixture.settings(model.settings);
const server = await fixture.serve();

const send = async (page, text) => {
	await page.getByLabel('Message').fill(text);
	await page.getByRole('button', { name: 'Send' }).click();
};

test('a conversation is started, streams, makes calls, and goes on', async () => {
	const one = await person();
	const page = await open(one, server, '/chat');
	assert.equal(await page.getByLabel('Provider').inputValue(), 'compatible');
	assert.equal(await page.getByLabel('Model').inputValue(), 'tiny');
	await page.getByLabel('Files').setInputFiles([
		{ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('remember the <milk>') },
		{ name: 'dot.png', mimeType: 'image/png', buffer: picture(4, 4, [1, 2, 3]) },
	]);
	await send(page, 'Tell me in two halves.');
	const log = page.getByRole('log');
	await log.getByText('Tell me in two halves.').waitFor();
	await log.getByText('1 image').waitFor();
	// The model waits with the second half.
	await page.locator('.writing').getByText('First half of it.').waitFor();
	assert.equal(await page.getByText('Second half of it.').count(), 0);
	await page.getByText('Working…').waitFor();
	// After a reload, what is written so far is there, and goes on.
	await page.reload();
	await page.locator('.writing').getByText('First half of it.').waitFor();
	goOn();
	await log.getByText('Second half of it.').waitFor();
	assert.equal(await log.getByText('First half of it.').count(), 1);
	await log.getByText('Done').waitFor();
	const asked = JSON.stringify(model.requests);
	assert(asked.includes('remember the <milk>') && asked.includes('image/png'), asked.slice(0, 2000));

	// Who cannot see it is told what came, and not what was there.
	const spoken = page.locator('[aria-live=polite] p');
	await spoken.filter({ hasText: 'Done' }).waitFor({ state: 'attached' });
	assert.match(await spoken.first().textContent(), /^tiny: First half of it\.[^]*Second half of it\.$/);
	assert.equal(await spoken.filter({ hasText: 'Tell me in two halves.' }).count(), 0);

	await send(page, 'Now make tea.');
	await log.locator('.chip').getByText('echo tea > tea.txt').waitFor();
	await log.getByText('<img src=x onerror=alert(1)>').waitFor();
	assert.equal(fixture.read('tea.txt'), 'tea\n');
	assert.equal(await log.locator('img, script').count(), 0);
	const links = await log.locator('a').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
	assert(links.every((href) => /^(#|https?:)/.test(href)), JSON.stringify(links));
	await log.getByText('<b>not bold</b>').waitFor();
	await page.locator('.chip .state.completed').waitFor();

	await log.getByText('Done').nth(1).waitFor();
	await send(page, 'Now sleep.');
	await log.locator('.chip').getByText('sleep 1000').waitFor();
	await page.locator('.chip .state.running').waitFor();
	await page.getByRole('button', { name: 'Stop' }).click();
	await page.getByText('Working…').waitFor({ state: 'detached' });
	await send(page, 'Still there?');
	await log.getByText('Stopped and asked again.').waitFor();
	// After a reload the conversation is the same.
	const said = await log.locator('article').count();
	await page.reload();
	await log.getByText('Stopped and asked again.').waitFor();
	assert.equal(await log.locator('article').count(), said);
	assert.equal(await spoken.count(), 0);
	await assertQuiet(one);
});

test('why a run cannot start is said beside the message', async () => {
	const one = await person();
	const page = await open(one, server, '/chat');
	await page.getByLabel('Provider').selectOption('gemini');
	await send(page, 'Hello?');
	await page.getByRole('alert').getByText('GEMINI_API_KEY').waitFor();
	assert.equal(await page.getByLabel('Message').inputValue(), 'Hello?');
	await assertQuiet(one, [/status of (400|500)/]);
});
