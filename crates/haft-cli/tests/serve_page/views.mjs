// Every view: what it shows, that axe-core finds nothing serious in it, in both themes, and that it fits a phone.
// With HAFT_SCREENSHOTS, pictures of the views are written to that folder.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { assertAccessible, assertFits, assertQuiet, close, go, open, person, ready } from './lib/browser.mjs';
import { fill } from './lib/content.mjs';
import { Fixture } from './lib/fixture.mjs';
import { startModel } from './lib/model.mjs';

const PHONE = { width: 360, height: 740 };
const DESK = { width: 1180, height: 760 };
const PICTURES = process.env.HAFT_SCREENSHOTS;

const fixture = new Fixture();
let server;
let numbers;
let session;
let chat;
/** The client that keeps a question open while the views are looked at. */
let waiting;
after(close);

before(async () => {
	numbers = await fill(fixture);
	const model = await startModel([
		{ call: ['Bash', { command: 'npm test' }] },
		{ text: 'The tests fail in **one** place:\n\n1. `src/index.js` answers with the path.\n2. The test expects `hello`.\n\n```js\nresponse.end(`hello`);\n```\n\n| file | lines |\n|---|---|\n| src/index.js | 9 |\n' },
	]);
	fixture.settings(`${model.settings}\n[permissions]\ndeny = [\n  "Bash(rm -rf *)",\n]\nask = ["Bash(git push *)"]\n`);
	server = await fixture.serve();
	session = (await server.api('/sessions')).sessions.find(({ calls }) => calls === 10).id;
	chat = (await server.api('/runs', { prompt: 'Why do the tests fail?' })).session;
	await ended(chat);
	const one = await person();
	await open(one, server);
	waiting = await fixture.mcp('--permission-mode', 'default');
	for (;;) {
		// Until the server has noted that a page is open, no one is asked.
		waiting.call('Bash', { command: 'git push --force origin main' });
		await one.context.pages()[0].locator('article.question').first().waitFor({ timeout: 2000 }).catch(() => {});
		if ((await server.api('/questions')).questions.length > 0) break;
	}
	fixture.start(['call', 'Bash', JSON.stringify({ command: "for i in 1 2 3; do printf '\\033[36mbuilding\\033[0m part %s of 3\\n' $i; done; sleep 1000" })]);
	await one.context.pages()[0].locator('article.run .output').getByText('part 3 of 3').waitFor();
});

async function ended(id) {
	while ((await server.api(`/sessions/${id}`)).session.is_driven) await new Promise((resolve) => setImmediate(resolve));
}

/** The views, with what each has to show. */
const VIEWS = [
	['now', () => '/now', (page) => [page.getByText('git push --force origin main').first(), page.getByText('part 3 of 3'), page.getByText('Recently finished')]],
	['sessions', () => '/sessions', (page) => [page.getByText('Why do the tests fail?'), page.getByText('10 calls')]],
	['timeline', () => `/session/${session}`, (page) => [page.getByText('rm -rf docs'), page.getByText('8 changes'), page.locator('.state.denied')]],
	['call', () => `/call/${numbers.edit}`, (page) => [page.getByRole('heading', { name: 'Edit #4' }), page.getByText('hello ${request.url}').first()]],
	['call-denied', () => `/call/${numbers.denied}`, (page) => [page.getByText('Bash(rm -rf *)').first(), page.getByText('haft.toml:3').first()]],
	['call-image', () => `/call/${numbers.image}`, (page) => [page.getByAltText('Before the change'), page.getByAltText('After the change')]],
	['call-output', () => `/call/${numbers.output}`, (page) => [page.getByText('31 tests passed').first()]],
	['files', () => '/files', (page) => [page.getByText('logo.png').first(), page.getByText('last.js').first()]],
	['undo', () => `/undo/calls/${numbers.many}`, (page) => [page.getByText('What would change').first(), page.getByText(/^Undo \(/)]],
	['undo-time', () => '/undo', (page) => [page.getByText('Drag back to a point in time')]],
	['replay', () => `/replay/${session}/${numbers.edit}`, (page) => [page.getByText('Call 4 of 10'), page.getByText('This call changed')]],
	['chat', () => `/chat/${chat}`, (page) => [page.getByText('The tests fail in'), page.getByText('npm test').first()]],
	['chat-new', () => '/chat', (page) => [page.getByLabel('Message')]],
	['rules', () => '/rules', (page) => [page.getByText('Bash(rm -rf *)').first(), page.getByText('Test a call')]],
];
/** The views with pictures in the documentation. */
const SHOWN = { now: 'now', timeline: 'timeline', call: 'call', undo: 'undo', replay: 'replay', chat: 'chat' };

async function eachView(page, check) {
	for (const [name, view, expected] of VIEWS) {
		await go(page, view());
		for (const locator of expected(page)) await locator.waitFor();
		await ready(page);
		await check(name);
	}
}

async function picture(page, name) {
	if (PICTURES && name) await page.screenshot({ path: join(PICTURES, `serve-${name}.png`), animations: 'disabled', caret: 'hide' });
}

for (const colorScheme of ['light', 'dark']) {
	test(`every view is there, accessible and quiet in the ${colorScheme} theme`, async () => {
		const one = await person({ colorScheme, viewport: DESK });
		const page = await open(one, server);
		await eachView(page, async (name) => {
			await assertAccessible(page, `${name}, ${colorScheme}`);
			const isShown = colorScheme === 'light' ? name !== 'replay' : ['now', 'replay'].includes(name);
			await picture(page, isShown && SHOWN[name] && `${SHOWN[name]}${colorScheme === 'dark' ? '-dark' : ''}`);
		});
		await assertQuiet(one);
		await one.context.close();
	});
}

test('the button for the theme changes the theme and keeps it', async () => {
	const one = await person({ colorScheme: 'light' });
	const page = await open(one, server);
	const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
	const light = await background();
	while (!(await page.locator('#theme').getAttribute('aria-label')).includes('dark')) await page.locator('#theme').click();
	assert.notEqual(await background(), light);
	await page.reload();
	await ready(page);
	assert.notEqual(await background(), light);
	await assertQuiet(one);
});

test('every view fits a phone', async () => {
	const one = await person({ viewport: PHONE, hasTouch: true, isMobile: true, colorScheme: 'dark' });
	const page = await open(one, server);
	await eachView(page, async (name) => {
		await assertFits(page, name);
		await picture(page, { now: 'phone-now', timeline: 'phone-timeline' }[name]);
	});
	// Buttons are large enough.
	await go(page, '/now');
	const card = page.locator('article.question');
	const boxes = await Promise.all(['Allow once', 'Deny'].map((name) => card.getByRole('button', { name, exact: true }).boundingBox()));
	for (const box of boxes) assert(box.height >= 44 && box.width >= 44, JSON.stringify(box));
	await assertAccessible(page, 'now, on a phone');
	await assertQuiet(one);
});

test('the timeline is filtered and searched', async () => {
	const one = await person();
	const page = await open(one, server, `/session/${session}`);
	const rows = page.locator('.call-row');
	await rows.nth(9).waitFor();
	await page.getByLabel('Failed or denied').check();
	await page.getByText('2 calls found.').waitFor();
	await page.getByLabel('Failed or denied').uncheck();
	await page.getByLabel('With changes').check();
	await page.getByText('6 calls found.').waitFor();
	await page.getByLabel('With changes').uncheck();
	await page.getByLabel('Search calls').fill('tests passed');
	await page.getByText('1 call found.').waitFor();
	await page.getByLabel('Search calls').fill('<img src=x onerror=alert(1)>');
	await page.getByText('No call matches.').waitFor();
	await page.getByLabel('Search calls').fill('');
	await page.getByLabel('Oldest first').check();
	await rows.first().getByText('mkdir -p src/lib').waitFor();
	await assertQuiet(one);
});

test('differences are shown in one column or side by side', async () => {
	const one = await person();
	const page = await open(one, server, `/call/${numbers.edit}`);
	await page.locator('table.diff tr.added').getByText('hello ${request.url}').waitFor();
	await page.locator('table.diff tr.removed').getByText("'hello'").waitFor();
	await page.getByRole('button', { name: 'Side by side' }).click();
	await page.locator('table.diff.wide td.added mark').waitFor();
	await page.reload();
	const wide = page.locator('table.diff.wide');
	await wide.waitFor();
	// The columns of numbers leave the width to the text.
	const widths = await wide.locator('tr').first().locator('td').evaluateAll((all) => all.map((cell) => cell.offsetWidth));
	assert(widths[0] * 4 < widths[1] && Math.abs(widths[1] - widths[3]) <= 1, JSON.stringify(widths));
	// A phone is too narrow for two of them.
	await page.setViewportSize(PHONE);
	await page.reload();
	await page.locator('table.diff:not(.wide)').waitFor();
	assert.equal(await page.getByRole('button', { name: 'Side by side' }).count(), 0);
	await go(page, `/call/${numbers.image}`);
	for (const name of ['Before', 'After']) {
		const width = await page.getByAltText(`${name} the change`).evaluate(async (image) => (await image.decode(), image.naturalWidth));
		assert.equal(width, 96);
	}
	await assertQuiet(one);
});

test('replay shows the folder as it was after each call', async () => {
	const one = await person();
	const page = await open(one, server, `/replay/${session}`);
	const after = page.locator('h2', { hasText: 'up to and including this call' }).locator('..');
	await page.getByText('Call 1 of 10').waitFor();
	await after.getByText('README.md').first().waitFor();
	assert.equal(await after.getByText('index.js').count(), 0);
	await page.getByRole('button', { name: 'Next ›' }).click();
	await after.getByText('index.js').first().waitFor();
	await page.getByRole('button', { name: 'Next error' }).click();
	await page.getByText('Call 6 of 10').waitFor();
	await page.getByRole('slider', { name: 'Call' }).fill('10');
	await page.getByText('Call 10 of 10').waitFor();
	await after.getByText('last.js').first().waitFor();
	await assertApart(after.locator('.tree-row'));
	// A reload shows the same call.
	await page.reload();
	await page.getByText('Call 10 of 10').waitFor();
	await assertQuiet(one);
});

/** Rows do not lie on top of each other. */
async function assertApart(rows) {
	await rows.first().waitFor();
	const boxes = await rows.evaluateAll((all) => all.map((row) => row.getBoundingClientRect()).map(({ top, bottom }) => ({ top, bottom })));
	boxes.sort((a, b) => a.top - b.top);
	for (const [at, { bottom }] of boxes.entries()) assert(at + 1 === boxes.length || boxes[at + 1].top > bottom - 1, JSON.stringify(boxes));
}

test('rows stay apart when the window gets narrow', async () => {
	const one = await person({ viewport: DESK });
	const page = await open(one, server, `/session/${session}`);
	const rows = page.locator('.call-row');
	await rows.nth(9).waitFor();
	await page.setViewportSize(PHONE);
	await page.waitForFunction(() => document.querySelector('.rows').offsetHeight > 600);
	await assertApart(rows);
	await go(page, `/call/${numbers.many}`);
	await assertApart(page.locator('.tree-row'));
	await assertQuiet(one);
});

test('going back leads to the search, the row and the place that were left', async () => {
	const one = await person({ viewport: { width: 900, height: 420 } });
	const page = await open(one, server, `/session/${session}`);
	const rows = page.locator('.call-row');
	await page.getByLabel('Search calls').fill('value');
	await page.getByText('calls found.').waitFor();
	const found = await rows.count();
	await rows.getByText('mv src/lib/value8.js').click();
	await page.getByRole('heading', { name: 'Bash #10' }).waitFor();
	await page.goBack();
	await page.getByText('calls found.').waitFor();
	assert.equal(await page.getByLabel('Search calls').inputValue(), 'value');
	assert.equal(await rows.count(), found);
	await page.waitForFunction(() => document.activeElement.getAttribute('href') === '#/call/10');
	await page.getByLabel('Search calls').fill('');
	await page.getByText('mkdir -p src/lib').scrollIntoViewIfNeeded();
	const place = () => page.evaluate(() => document.getElementById('main').scrollTop);
	const left = await place();
	assert(left > 0);
	await page.getByText('mkdir -p src/lib').click();
	await page.getByRole('heading', { name: 'Bash #1', exact: true }).waitFor();
	// From a call to the one after it and back.
	await page.getByRole('link', { name: 'Next #2' }).waitFor();
	await page.keyboard.press(']');
	await page.getByRole('heading', { name: 'Write #2' }).waitFor();
	await page.goBack();
	await page.getByRole('heading', { name: 'Bash #1', exact: true }).waitFor();
	await page.goBack();
	await page.waitForFunction((left) => document.getElementById('main').scrollTop === left, left);
	await assertQuiet(one);
});

test('why a call failed is said once, and its end is in view', async () => {
	const one = await person();
	const page = await open(one, server, `/call/${numbers.failed}`);
	await page.getByRole('heading', { name: 'Result as the agent saw it' }).waitFor();
	assert.equal(await page.getByRole('heading', { name: 'Error', exact: true }).count(), 0);
	assert.equal(await page.locator('.output').getByText('expected hello').count(), 1);
	await fixture.bash('seq 1 400; echo the reason >&2; exit 1');
	const { id } = (await server.api('/calls')).calls.find(({ about }) => about.startsWith('seq 1 400'));
	await go(page, `/call/${id}`);
	await page.locator('.output').getByText('the reason').first().waitFor();
	await page.waitForFunction(() => {
		const box = document.querySelector('[aria-label=Result]');
		return box.scrollTop > 0 && box.scrollTop + box.clientHeight >= box.scrollHeight - 1;
	});
	await assertQuiet(one);
});

test('nothing is said about undoing what did not run or still runs', async () => {
	const one = await person();
	const page = await open(one, server, `/call/${numbers.denied}`);
	await page.getByText('It did not run.').waitFor();
	assert.equal(await page.getByText('Can be undone').count(), 0);
	assert.equal(await page.locator('p.warn').count(), 0);
	const running = (await server.api('/now')).calls[0].id;
	await go(page, `/call/${running}`);
	await page.getByText('part 3 of 3').waitFor();
	assert.equal(await page.getByText('Can be undone').count(), 0);
	assert.equal(await page.locator('p.warn').count(), 0);
	await go(page, `/undo/calls/${numbers.denied}`);
	await page.getByText('There is nothing to change.').waitFor();
	assert.equal(await page.getByRole('button', { name: /^Undo/ }).count(), 0);
	assert.equal(await page.locator('.tree').count(), 0);
	await assertQuiet(one);
});

test('a tree opens on its first file', async () => {
	const one = await person();
	const page = await open(one, server, '/files');
	await page.locator('.tree-row [aria-current]').waitFor();
	const shown = await page.locator('.tree-row button:not([aria-expanded])').first().getAttribute('title');
	assert.equal(await page.locator('.tree-row [aria-current]').getAttribute('title'), shown);
	await page.locator('section.change h3').getByText(shown).waitFor();
	await assertQuiet(one);
});
