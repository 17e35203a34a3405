// The list of sessions: it says how they are now, whichever program they belong to.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { alter, assertQuiet, close, go, open, person } from './lib/browser.mjs';
import { Fixture } from './lib/fixture.mjs';
import { startModel } from './lib/model.mjs';

const fixture = new Fixture();
after(close);

const model = await startModel([
	{ call: ['Bash', { command: 'echo tea > tea.txt' }] },
	{ text: 'There is tea.' },
	{ call: ['Bash', { command: 'sleep 1000' }] },
]);
fixture.settings(model.settings);
const server = await fixture.serve();

test('the calls of a session are counted while they are made', async () => {
	const one = await person();
	const page = await open(one, server, '/sessions');
	await page.getByText('There are no sessions yet.').waitFor();
	const client = await fixture.mcp();
	const row = page.locator('.session-row');
	await client.bash('echo first');
	await row.getByText('1 call', { exact: true }).waitFor();
	await row.getByText('running').waitFor({ state: 'detached' });
	assert.equal(await page.getByText('There are no sessions yet.').count(), 0);
	const call = client.bash('until [ -e go-on ]; do sleep 0.01; done');
	await row.getByText('▶ running').waitFor();
	await row.getByText('2 calls').waitFor();
	// It runs for a page that is opened only now, too.
	await page.reload();
	await row.getByText('▶ running').waitFor();
	fixture.write('go-on', '');
	await call;
	await row.getByText('running').waitFor({ state: 'detached' });
	await row.getByText('2 calls').waitFor();
	assert.equal(await row.count(), 1);
	await client.end();
	await assertQuiet(one);
	await one.context.close();
});

test('with the oldest first, new calls come at the end', async () => {
	const one = await person();
	const client = await fixture.mcp();
	await client.bash('echo 1');
	const { session } = (await server.api('/calls')).calls[0];
	const page = await open(one, server, `/session/${session}`);
	await page.getByLabel('Oldest first').check();
	const rows = page.locator('.call-row .about');
	for (const last of [2, 3]) {
		await client.bash(`echo ${last}`);
		await rows.getByText(`echo ${last}`).waitFor();
	}
	assert.deepEqual(await rows.allTextContents(), ['echo 1', 'echo 2', 'echo 3']);
	await client.end();
	await assertQuiet(one);
	await one.context.close();
});

test('a run has its title as soon as it has a message, in each view', async () => {
	const one = await person();
	const [page, now] = [await open(one, server, '/sessions'), await open(one, server)];
	await server.api('/runs', { prompt: 'Make tea, please.' });
	const row = page.locator('.session-row').filter({ hasText: 'Make tea, please.' });
	await row.getByText('1 call', { exact: true }).waitFor();
	await now.locator('.call-row').filter({ hasText: 'echo tea > tea.txt' }).getByRole('link', { name: 'Make tea, please.' }).waitFor();
	await go(now, '/sessions');
	await now.locator('.session-row').filter({ hasText: 'Make tea, please.' }).waitFor();
	await assertQuiet(one);
});

test('a run is stopped on Now, or it is said why not', async () => {
	const one = await person();
	const page = await open(one, server);
	const { session } = await server.api('/runs', { prompt: 'Sleep.' });
	const run = page.locator('section', { hasText: 'Active conversations' }).locator('.rows-static > *').filter({ hasText: 'Sleep.' });
	await page.locator('article.run').getByText('sleep 1000').waitFor();
	const stop = run.getByRole('button', { name: 'Stop' });
	const why = 'The run waits for a message, so there is nothing to interrupt.';
	await one.context.route('**/interrupt', (route) => route.fulfill({ status: 409, json: { error: { kind: 'conflict', message: why } } }), { times: 1 });
	await stop.click();
	await run.getByRole('status').getByText(why).waitFor();
	assert(await stop.isEnabled());
	await stop.click();
	await run.waitFor({ state: 'detached' });
	const ended = (await server.api(`/sessions/${session}`)).session;
	assert.equal(ended.is_driven, false);
	// A run that cannot be stopped has no button.
	await alter(one, server, '/now', (now) => now.sessions.push({ ...ended, is_driven: true }));
	await alter(one, server, `/sessions/${session}`, ({ session }) => (session.is_driven = true));
	await page.reload();
	await run.waitFor();
	await page.getByText('Recently finished').waitFor();
	assert.equal(await stop.count(), 0);
	await assertQuiet(one);
});
