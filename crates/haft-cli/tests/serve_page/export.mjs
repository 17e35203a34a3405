// A session as one file: opened from the disk, with the same views, and without requests.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, test } from 'node:test';

import { assertAccessible, assertQuiet, close, open, person } from './lib/browser.mjs';
import { fill } from './lib/content.mjs';
import { Fixture, TOKENS } from './lib/fixture.mjs';

const fixture = new Fixture();
const numbers = await fill(fixture);
await fixture.bash("echo '</script><script>alert(1)</script><!--' > '</script><img src=x onerror=alert(2)>'; cat '</scr'*");
const server = await fixture.serve();
const { sessions } = await server.api('/sessions');
after(close);

async function saved(one, id) {
	const page = await open(one, server, `/session/${id}`);
	const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export' }).click()]);
	const path = join(fixture.base, download.suggestedFilename());
	await download.saveAs(path);
	await page.close();
	return path;
}

test('an exported session shows the same without a server', async () => {
	const one = await person();
	const path = await saved(one, sessions.find(({ calls }) => calls === 10).id);
	const html = readFileSync(path, 'utf8');
	for (const token of Object.values(TOKENS)) assert(!html.includes(token));
	one.requests.length = 0;
	const page = await one.context.newPage();
	await page.goto(pathToFileURL(path).href);
	await page.getByText('Exported session').waitFor();
	await page.locator('.call-row').nth(9).waitFor();
	// What needs a server is not there.
	assert.equal(await page.getByRole('link', { name: 'Undo' }).count(), 0);
	assert.equal(await page.getByRole('button', { name: 'Export' }).count(), 0);
	await assertAccessible(page, 'export');
	await page.locator('.call-row').getByText('rm -rf docs').click();
	await page.getByText('haft.toml:3').first().waitFor();
	const visit = (view) => page.evaluate((hash) => (location.hash = hash), view);
	await visit(`#/call/${numbers.edit}`);
	await page.locator('tr.added').getByText('hello ${request.url}').waitFor();
	await visit(`#/call/${numbers.image}`);
	await page.getByAltText('After the change').waitFor();
	const width = await page.getByAltText('After the change').evaluate(async (image) => (await image.decode(), image.naturalWidth));
	assert.equal(width, 96);
	await page.goBack();
	await visit('#');
	await page.getByRole('link', { name: 'Replay' }).click();
	await page.getByText('Call 1 of 10').waitFor();
	await page.getByRole('button', { name: 'Next error' }).click();
	await page.getByText('Call 6 of 10').waitFor();
	await page.getByRole('link', { name: 'Files', exact: true }).click();
	await page.getByText('last.js').first().waitFor();
	const asked = one.requests.filter((url) => !url.startsWith('file:') && !url.startsWith('data:') && !url.startsWith('blob:'));
	assert.deepEqual(asked, []);
	assert.equal(one.requests.filter((url) => url.startsWith('file:')).length, 1);
	await assertQuiet(one);
	await one.context.close();
});

test('hostile content does not get out of the file', async () => {
	const one = await person();
	const path = await saved(one, sessions.find(({ calls }) => calls === 1).id);
	const page = await one.context.newPage();
	await page.goto(pathToFileURL(path).href);
	await page.locator('.call-row a').first().click();
	await page.getByText('</script><script>alert(1)</script><!--').first().waitFor();
	assert.equal(await page.locator('main img').count(), 0);
	await assertQuiet(one);
});
