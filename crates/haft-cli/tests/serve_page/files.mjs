// The view Files: it follows what is changed and keeps what a person looks at.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { alter, assertAccessible, assertQuiet, close, go, open, person } from './lib/browser.mjs';
import { Fixture } from './lib/fixture.mjs';

const fixture = new Fixture();
after(close);
const mcp = await fixture.mcp();
await mcp.bash('seq 1 300 > long.txt; echo second > second.txt');
await mcp.bash('seq 301 400 >> long.txt');
const server = await fixture.serve();

test('what is read stays in its place when something else changes', async () => {
	const one = await person({ viewport: { width: 1180, height: 500 } });
	const page = await open(one, server, '/files');
	const detail = page.locator('section.change');
	await detail.locator('tr.added').nth(399).waitFor();
	const place = () => page.evaluate(() => [document.getElementById('main'), ...document.querySelectorAll('.detail, .diff-scroll')].map(({ scrollTop }) => scrollTop));
	await detail.evaluate((element) => (element.dataset.isSame = 'yes'));
	await detail.locator('tr.added').nth(399).scrollIntoViewIfNeeded();
	const left = await place();
	assert(left.some((top) => top > 0), JSON.stringify(left));
	await mcp.bash('echo other > other.txt');
	await page.locator('.tree-row').getByText('other.txt').waitFor();
	assert.equal(await detail.getAttribute('data-is-same'), 'yes');
	assert.deepEqual(await place(), left);
	// Another content is shown.
	await mcp.bash('echo the end >> long.txt');
	await detail.locator('tr.added').getByText('the end').waitFor();
	await assertQuiet(one);
	await one.context.close();
});

test('all calls that changed a path lead to them', async () => {
	const one = await person();
	const page = await open(one, server, '/files');
	const links = page.locator('.detail').getByRole('link');
	await links.nth(2).waitFor();
	assert.deepEqual(await links.allTextContents(), ['#4', '#2', '#1']);
	await assertAccessible(page, 'files');
	// Those that come later are added.
	await page.locator('section.change').evaluate((element) => (element.dataset.isSame = 'yes'));
	await mcp.bash('echo more >> long.txt');
	await mcp.bash('head -n 401 long.txt > short.txt; cat short.txt > long.txt; rm short.txt');
	await links.nth(4).waitFor();
	await links.nth(3).focus();
	await page.keyboard.press('Enter');
	await page.getByRole('heading', { name: 'Bash #2' }).waitFor();
	await assertQuiet(one);
	await one.context.close();
});

test('a file without a hash is no empty file', async () => {
	const one = await person();
	await alter(one, server, '/calls/2', ({ changes }) => delete changes.changes[0].before.hash);
	await alter(one, server, '/calls/4', ({ changes }) => delete changes.changes[0].after.hash);
	const page = await open(one, server, '/call/2');
	for (const call of [2, 4]) {
		await go(page, `/call/${call}`);
		await page.getByText('The ledger does not have its content').waitFor();
		assert.equal(await page.locator('tr.added, tr.removed').count(), 0);
	}
	await assertQuiet(one);
});
