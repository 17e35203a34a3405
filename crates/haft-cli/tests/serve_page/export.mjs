// A session as one file: opened from the disk, with the same views, and without requests.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
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

/** Changes of all kinds: more than come with a call, and directories that move. */
const CHANGES = [
	"mkdir -p a/b many && seq -f 'many/%03g.txt' 1 1200 | xargs touch && echo 1 > a/one.txt && echo 2 > a/b/two.txt && echo 3 > three.txt",
	'echo more >> a/b/two.txt; chmod 600 three.txt; ln -s three.txt link',
	'mv a moved && echo new > moved/new.txt && mv many/001.txt many/other.txt',
	'mv moved/b b && rm many/002.txt && chmod 700 moved && echo again >> b/two.txt',
	'rm three.txt link; echo again > three.txt; mv b moved/back; rm moved/one.txt',
];

test('replay shows the same files without a server', async () => {
	const mcp = await fixture.mcp();
	for (const command of CHANGES) await mcp.bash(command);
	await mcp.end();
	const { id } = (await server.api('/sessions')).sessions.find(({ calls }) => calls === CHANGES.length);
	const { calls } = await server.api(`/sessions/${id}/calls`);
	const one = await person();
	const path = await saved(one, id);
	const page = await one.context.newPage();
	await page.goto(pathToFileURL(path).href);
	await page.locator('.call-row').nth(4).waitFor();
	/** What the page has for its tree, by path. */
	const shown = (until) =>
		page.evaluate(async ([session, until]) => {
			const { files } = await import('haft/api.js');
			return files({ session, until }, 0, new AbortController().signal);
		}, [id, until]);
	const byPath = ({ changes }) => new Map(changes.map((change) => [change.path, change]).sort(([a], [b]) => (a < b ? -1 : 1)));
	for (const call of calls) {
		const there = [];
		for (let offset = 0; offset !== null;) {
			const { changes } = await server.api(`/files?session=${id}&until=${call.id}&limit=1000&offset=${offset}`);
			there.push(...changes.changes);
			offset = changes.next;
		}
		const { changes, missing } = await shown(call.id);
		assert.equal(missing, 0);
		assert.deepEqual(byPath(changes), byPath({ changes: there }), `after ${call.about}`);
	}
	// Of a call that is not in the file, the file says so, and the rest is there.
	const marks = ['<script type="application/json" id="export">', '</script>'];
	const html = readFileSync(path, 'utf8');
	const from = html.indexOf(marks[0]) + marks[0].length;
	const data = JSON.parse(html.slice(from, html.indexOf(marks[1], from)));
	assert.equal(data.is_cut, false);
	delete data.responses[`/api/v1/calls/${calls[1].id}`];
	data.is_cut = true;
	writeFileSync(path, html.slice(0, from) + JSON.stringify(data).replaceAll('<', '\\u003c') + html.slice(html.indexOf(marks[1], from)));
	await page.goto('about:blank');
	await page.goto(pathToFileURL(path).href);
	await page.getByText('does not have all of the session').waitFor();
	await page.getByRole('link', { name: 'Replay' }).click();
	const slider = page.getByRole('slider', { name: 'Call' });
	for (const at of [4, 5]) {
		await slider.fill(String(at));
		await page.getByText(`Call ${at} of 5`).waitFor();
		await page.getByText('Not all changes of 1 call are in the exported file').waitFor();
		await page.getByText('003.txt').first().waitFor();
		await page.getByText('This is not part of the exported file.').waitFor({ state: at === 4 ? 'visible' : 'detached' });
	}
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
