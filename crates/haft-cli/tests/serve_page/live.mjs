// What happens elsewhere is seen at once and can be answered here, and nothing is lost when the server dies.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, test } from 'node:test';

import { alter, assertQuiet, close, CONNECTION_LOST, go, open, person } from './lib/browser.mjs';
import { Fixture } from './lib/fixture.mjs';
import { askingClient, OPEN, press } from './lib/questions.mjs';

const TABS = 12;
const ROUNDS = 7;

const fixture = new Fixture();
let server = await fixture.serve();
after(close);

const asking = (page) => askingClient(fixture, page);

test('a call is seen when it begins, while it writes and when it ends', async () => {
	const one = await person();
	const page = await open(one, server);
	await page.getByText('Nothing is waiting for you').waitFor();
	// When the page shows a call, and when its output. The browser's clock is that of the server.
	await page.evaluate(() => {
		window.seen = {};
		new MutationObserver(() => {
			const card = document.querySelector('article.run');
			if (card) window.seen.card ??= Date.now();
			if (card?.querySelector('.output')?.textContent) window.seen.output ??= Date.now();
		}).observe(document.body, { subtree: true, childList: true, characterData: true });
	});
	const delays = { call: [], output: [] };
	for (let round = 0; round < ROUNDS; round++) {
		await page.evaluate(() => (window.seen = {}));
		const call = fixture.bash(`date +%s%3N; until [ -e go${round} ]; do sleep 0.01; done; echo finished ${round}`);
		const card = page.locator('article.run');
		const written = await card.locator('.output').filter({ hasText: /^\d{13}/ }).textContent();
		const seen = await page.evaluate(() => window.seen);
		delays.call.push(seen.card - (await server.api('/now')).calls[0].started_at);
		delays.output.push(seen.output - Number(written.slice(0, 13)));
		fixture.write(`go${round}`, '');
		await call;
		await card.waitFor({ state: 'detached' });
		await page.getByText('Recently finished').waitFor();
	}
	for (const [what, all] of Object.entries(delays)) {
		all.sort((a, b) => a - b);
		console.log(`# until the page shows the ${what}: median ${all[ROUNDS >> 1]} ms, longest ${all[ROUNDS - 1]} ms`);
	}
	// The call is also in the timeline of its session.
	const { sessions } = await server.api('/sessions');
	await go(page, `/session/${sessions[0].id}`);
	await page.locator('.call-row').filter({ hasText: 'done' }).first().waitFor();
	await assertQuiet(one);
});

test('output that a page has loaded already is not shown twice', async () => {
	// Of a server that no page was open at before, a page gets the output from its beginning.
	const own = await fixture.serve();
	const call = fixture.bash("printf 'one\\ntwo\\nthree\\n'; until [ -e shown ]; do sleep 0.01; done; echo four; until [ -e told ]; do sleep 0.01; done");
	const written = async () => (await own.api('/now')).calls[0]?.output?.text;
	while ((await written()) !== 'one\ntwo\nthree\n') await new Promise((resolve) => setImmediate(resolve));
	const one = await person();
	// What the page loads was asked for when only the first line was there.
	await alter(one, own, '/now', (now) => (now.calls[0].output = { from: 0, next: 4, text: 'one\n' }));
	const page = await open(one, own);
	const output = page.locator('article.run .output');
	await output.getByText('three').waitFor();
	assert.deepEqual(await output.locator('div').allTextContents(), ['one', 'two', 'three']);
	fixture.write('shown', '');
	await output.getByText('four').waitFor();
	assert.deepEqual(await output.locator('div').allTextContents(), ['one', 'two', 'three', 'four']);
	fixture.write('told', '');
	await call;
	await assertQuiet(one);
	await one.context.close();
	await own.kill();
});

test('a question is answered from the page, by whoever is first', async () => {
	const [first, second] = [await person(), await person()];
	const page = await open(first, server);
	const client = await asking(page);
	const other = await open(second, server);
	const call = client.bash('echo tea > tea.txt');
	const card = page.locator(OPEN);
	await card.getByText('echo tea > tea.txt').first().waitFor();
	await other.locator(OPEN).getByText('echo tea > tea.txt').first().waitFor();
	assert.match(await page.title(), /^\(1\) /);
	assert(!existsSync(fixture.path('tea.txt')));
	await press(page, 'Allow once');
	assert.equal((await call).failed, false);
	assert.equal(fixture.read('tea.txt'), 'tea\n');
	await page.getByText('Allowed once.').last().waitFor();
	await other.getByText('Answered by a person on Haft').waitFor();
	// Both at once: one wins, the other is told.
	const again = client.bash('echo both > both.txt');
	await Promise.all([page, other].map((tab) => tab.locator(OPEN).waitFor()));
	await Promise.all([page, other].map((tab) => press(tab, 'Allow once')));
	assert.equal((await again).failed, false);
	const texts = await Promise.all([page, other].map((tab) => tab.locator('article.question.done .answered').last().textContent()));
	assert.equal(texts.filter((text) => text.startsWith('Allowed')).length, 1, JSON.stringify(texts));
	// A denial tells the agent why.
	const denied = client.bash('echo no > no.txt');
	const last = page.locator(OPEN);
	await last.getByLabel('Reason for a denial').fill('use <b>coffee</b>');
	await press(page, 'Deny');
	const { failed, text } = await denied;
	assert(failed && text.includes('use <b>coffee</b>'), text);
	await client.end();
	for (const one of [first, second]) {
		await assertQuiet(one);
		await one.context.close();
	}
});

test('a question is seen from its beginning, with the name of its session', async () => {
	for (const viewport of [{ width: 1280, height: 800 }, { width: 360, height: 740 }]) {
		const one = await person({ viewport });
		const page = await open(one, server);
		const client = await asking(page);
		await page.reload();
		await page.getByText('Nothing is waiting for you').waitFor();
		const lines = Array.from({ length: 16 }, (_, line) => `echo line ${line} of many > many.txt`);
		const call = client.bash(lines.join('\n'));
		const card = page.locator(OPEN);
		await card.getByRole('link', { name: 'MCP · project' }).waitFor();
		// The rest of the view is there as well.
		await page.getByText('Recently finished').waitFor();
		const beginning = () => page.evaluate(() => document.querySelector('article.question:not(.done) h3').getBoundingClientRect().top - document.getElementById('main').getBoundingClientRect().top);
		assert((await beginning()) >= 0, String(await beginning()));
		await page.reload();
		await card.waitFor();
		await page.getByText('Recently finished').waitFor();
		assert((await beginning()) >= 0, `after a reload: ${await beginning()}`);
		await press(page, 'Deny');
		await call;
		await client.end();
		await assertQuiet(one);
		await one.context.close();
	}
});

test('a question is answered on the page of its session, and then it no longer waits', async () => {
	const one = await person();
	const page = await open(one, server);
	const client = await asking(page);
	const call = client.bash('echo here > here.txt');
	await page.locator(OPEN).waitFor();
	const [{ session }] = (await server.api('/questions')).questions;
	await go(page, '/sessions');
	const row = page.locator('.session-row').filter({ hasText: 'needs an answer' });
	await row.getByText('echo here > here.txt').click();
	await page.locator('main.view-session').waitFor();
	assert(page.url().includes(session));
	await page.locator(OPEN).waitFor();
	await press(page, 'Allow once');
	assert.equal((await call).failed, false);
	await page.getByRole('heading', { name: 'Allowed: Bash' }).waitFor();
	// On Now the answered card stands apart from those that wait.
	await go(page, '/now');
	const next = client.bash('echo next > next.txt');
	await page.locator(OPEN).waitFor();
	await page.locator(OPEN).getByLabel('Reason for a denial').fill('not now');
	while ((await page.locator(OPEN).count()) > 0) {
		// The key is ignored for a moment after the layout changed.
		await page.locator(OPEN).getByLabel('Reason for a denial').press('Enter', { timeout: 1000 }).catch(() => {});
		await page.locator(OPEN).waitFor({ state: 'detached', timeout: 500 }).catch(() => {});
	}
	assert.match((await next).text, /not now/);
	const answered = page.locator('section', { hasText: 'Answered' }).locator('article.question.done');
	await answered.getByRole('heading', { name: 'Denied: Bash' }).waitFor();
	await answered.getByText('The agent is told: not now').waitFor();
	assert.equal(await answered.locator('[data-since]').count(), 0);
	await page.getByText('Nothing is waiting for you').waitFor();
	assert(await page.getByText('Waiting for you', { exact: true }).isHidden());
	await client.end();
	await assertQuiet(one);
	await one.context.close();
});

test('twelve tabs share one stream and show the same', async () => {
	const one = await person();
	const before = fixture.accessLog().filter(({ path }) => path === '/api/v1/events').length;
	const tabs = [];
	for (let tab = 0; tab < TABS; tab++) tabs.push(await open(one, server));
	const call = fixture.bash('until [ -e all ]; do sleep 0.01; done');
	for (const tab of tabs) await tab.locator('article.run').waitFor();
	fixture.write('all', '');
	await call;
	for (const tab of tabs) await tab.locator('article.run').waitFor({ state: 'detached' });
	const streams = fixture.accessLog().filter(({ path }) => path === '/api/v1/events').length - before;
	assert.equal(streams, 1);
	await assertQuiet(one);
	await one.context.close();
});

test('after the death of the server the page goes on without gaps or doubles', async () => {
	const one = await person();
	const { session } = (await server.api('/calls')).calls[0];
	const page = await open(one, server, `/session/${session}`);
	const client = await fixture.mcp();
	await client.bash('echo before');
	const { sessions } = await server.api('/sessions');
	await go(page, `/session/${sessions[0].id}`);
	const rows = page.locator('.call-row');
	await rows.filter({ hasText: 'echo before' }).waitFor();
	const port = server.port;
	for (let round = 0; round < 2; round++) {
		await server.kill();
		await client.bash(`echo while away ${round}`);
		server = await fixture.serve(port);
		await client.bash(`echo afterwards ${round}`);
		await rows.filter({ hasText: `echo afterwards ${round}` }).waitFor();
	}
	await page.locator('#connection.live').waitFor();
	const shown = await rows.locator('.about').allTextContents();
	assert.deepEqual(shown, ['echo afterwards 1', 'echo while away 1', 'echo afterwards 0', 'echo while away 0', 'echo before']);
	const ledger = (await server.api(`/sessions/${sessions[0].id}/calls`)).calls.map(({ about }) => about);
	assert.deepEqual(shown, ledger);
	await client.end();
	await assertQuiet(one, [CONNECTION_LOST]);
	await one.context.close();
});

test('a question survives the death of the server', async () => {
	const one = await person();
	const page = await open(one, server);
	const client = await asking(page);
	const call = client.bash('echo survived > survived.txt');
	await page.locator(OPEN).getByText('echo survived').first().waitFor();
	const { port } = server;
	await server.kill();
	server = await fixture.serve(port);
	await page.locator('#connection.live').waitFor();
	await press(page, 'Allow once');
	assert.equal((await call).failed, false);
	assert.equal(fixture.read('survived.txt'), 'survived\n');
	await client.end();
	await assertQuiet(one, [CONNECTION_LOST]);
});
