// Long lists: only the rows near the window are in the document, and scrolling shows each row in its place.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { assertQuiet, close, go, open, person } from './lib/browser.mjs';
import { Fixture } from './lib/fixture.mjs';

/** The bench `serve` has 100,000; how much is in the document does not depend on the number. */
const CALLS = 10_000;
const CHANGES = 5_000;
const AT_ONCE = 64;
/** Rows that may be in the document. */
const MAX_ROWS = 120;

const fixture = new Fixture();
fixture.write('a.txt', 'x\n');
const mcp = await fixture.mcp();
let sent = 0;
async function some() {
	while (sent++ < CALLS) await mcp.call('Read', { file_path: fixture.path('a.txt') });
}
await Promise.all(Array.from({ length: AT_ONCE }, some));
await mcp.end();
await fixture.bash(`mkdir many && cd many && seq -f 'file%05g.txt' ${CHANGES} | xargs touch`);
const server = await fixture.serve();
const session = (await server.api('/sessions')).sessions.find(({ calls }) => calls === CALLS).id;
const changed = (await server.api('/calls')).calls[0];
assert(changed.change_count >= CHANGES, JSON.stringify(changed));
after(close);

test('a session of many calls scrolls from end to end with few elements', async () => {
	const one = await person();
	const page = await open(one, server, `/session/${session}`);
	const rows = page.locator('.call-row');
	await rows.first().waitFor();
	const longest = await page.evaluate(async (max) => {
		const main = document.getElementById('main');
		const list = document.querySelector('[aria-label=Calls]');
		const frame = () => new Promise((resolve) => requestAnimationFrame(() => resolve(performance.now())));
		let before = await frame();
		let longest = 0;
		for (let step = 0; step < 120; step++) {
			main.scrollTop = (main.scrollHeight * step) / 120;
			const now = await frame();
			longest = Math.max(longest, now - before);
			before = now;
			if (list.childElementCount > max) throw new Error(`${list.childElementCount} rows`);
		}
		main.scrollTop = main.scrollHeight;
		return longest;
	}, MAX_ROWS);
	console.log(`# the longest frame while ${CALLS} rows are scrolled: ${Math.round(longest)} ms`);
	// The last row is the first call.
	await page.locator(`[aria-posinset="${CALLS}"].call-row a[href="#/call/1"]`).waitFor();
	assert((await rows.count()) <= MAX_ROWS);
	await page.evaluate(() => (document.getElementById('main').scrollTop = 0));
	await page.locator(`[aria-posinset="1"].call-row`).waitFor();
	// From the oldest on, the others are not waited for.
	one.requests.length = 0;
	await page.getByLabel('Oldest first').check();
	await page.locator('[aria-posinset="1"].call-row a[href="#/call/1"]').waitFor();
	const parts = one.requests.filter((url) => url.includes('/calls?'));
	assert(parts.length <= 2, `${parts.length} requests`);
	await page.evaluate(() => (document.getElementById('main').scrollTop = document.getElementById('main').scrollHeight));
	await page.locator(`[aria-posinset="${CALLS}"].call-row a[href="#/call/${CALLS}"]`).waitFor();
	await assertQuiet(one);
	await one.context.close();
});

test('a call with many changes shows its tree with few elements', async () => {
	const one = await person();
	const page = await open(one, server, `/call/${changed.id}`);
	await page.getByText(`${(CHANGES + 1).toLocaleString('en')} changes`).first().waitFor();
	const rows = page.locator('.tree-row');
	await page.getByText('file00001.txt').first().waitFor();
	assert((await rows.count()) <= MAX_ROWS, String(await rows.count()));
	await page.locator('.tree-scroll').first().evaluate((box) => (box.scrollTop = box.scrollHeight));
	await page.getByText('file00999.txt').first().waitFor();
	await page.getByLabel('Filter paths').first().fill('file04321');
	await page.getByText('1 change found').waitFor();
	assert((await rows.count()) <= MAX_ROWS);
	await go(page, '/files');
	await page.getByText('file00001.txt').first().waitFor();
	assert((await rows.count()) <= MAX_ROWS);
	// What was loaded by scrolling stays when something else changes.
	const last = rows.getByText(`file0${CHANGES}.txt`);
	while ((await last.count()) === 0) await page.locator('.tree-scroll').evaluate((box) => (box.scrollTop = box.scrollHeight));
	await fixture.bash('echo one more > one-more.txt');
	await page.getByText(`${(CHANGES + 2).toLocaleString('en')} changes`).waitFor();
	await last.waitFor();
	assert((await rows.count()) <= MAX_ROWS);
	await assertQuiet(one);
});
