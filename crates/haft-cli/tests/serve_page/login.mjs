// The token: taken from the address, kept in the tab, sent in a header, and found nowhere else.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { assertQuiet, close, open, person, ready } from './lib/browser.mjs';
import { Fixture, TOKENS } from './lib/fixture.mjs';

const fixture = new Fixture();
await fixture.bash('echo one > a.txt');
const server = await fixture.serve();
after(close);

test('the token leaves the address at once and survives a reload', async () => {
	const one = await person();
	const page = await open(one, server);
	assert(!page.url().includes('token'));
	assert(!(await page.evaluate(() => document.documentElement.outerHTML)).includes(TOKENS.act));
	await page.reload();
	await ready(page);
	await page.getByText('Recently finished').waitFor();
	assert.deepEqual(await one.context.cookies(), []);
	const kept = await page.evaluate(() => JSON.stringify(localStorage));
	assert(!kept.includes(TOKENS.act));
	await assertQuiet(one);
	// Going back does not return to an address with a token.
	await page.goBack().catch(() => {});
	assert(!page.url().includes('token'));
});

test('an address leads to a view, and another tab needs a token of its own', async () => {
	const one = await person();
	const page = await open(one, server, '/call/1');
	await page.getByRole('heading', { name: 'Bash #1' }).waitFor();
	const other = await one.context.newPage();
	await other.goto(server.origin);
	await other.getByRole('heading', { name: 'A token is needed' }).waitFor();
	await other.getByLabel('Address or token').fill(`${server.origin}/#token=${TOKENS.view}`);
	await other.getByRole('button', { name: 'Open' }).click();
	await ready(other);
	await assertQuiet(one);
});

test('a wrong token leads to the login, and a right one from there to the page', async () => {
	const one = await person();
	const page = await one.context.newPage();
	await page.goto(`${server.origin}/#token=wrong-0123456789abcdef`);
	await page.getByRole('heading', { name: 'The token is not valid' }).waitFor();
	await page.getByLabel('Address or token').fill(TOKENS.act);
	await page.keyboard.press('Enter');
	await ready(page);
	await page.getByRole('heading', { name: 'Now' }).waitFor();
	await assertQuiet(one);
});

test('a page of another port gets nothing', async () => {
	const one = await person();
	await open(one, server);
	// The agent's own web server, on another port of the same machine.
	const other = new Fixture();
	const neighbour = await other.serve();
	const seen = [];
	const page = await one.context.newPage();
	page.on('request', async (request) => seen.push(await request.allHeaders()));
	await page.goto(neighbour.origin);
	await page.getByRole('heading', { name: 'A token is needed' }).waitFor();
	const stolen = await page.evaluate(async (origin) => {
		const asked = await fetch(`${origin}/api/v1/meta`, { credentials: 'include' }).then((answer) => answer.status, (error) => error.name);
		return { asked, storage: JSON.stringify([{ ...localStorage }, { ...sessionStorage }]) };
	}, server.origin);
	// The page's own policy blocks the request before the server can refuse it.
	assert.equal(stolen.asked, 'TypeError');
	assert(!stolen.storage.includes(TOKENS.act));
	for (const headers of seen) {
		assert.equal(headers.cookie, undefined);
		assert(!JSON.stringify(headers).includes(TOKENS.act));
	}
});

test('roles see what they may do', async () => {
	for (const [role, has] of [['view', false], ['approve', false], ['act', true]]) {
		const one = await person();
		const page = await open(one, server, '/call/1', role);
		assert.equal(await page.getByRole('link', { name: 'Undo…' }).count(), has ? 1 : 0, role);
		await assertQuiet(one);
		await one.context.close();
	}
});
