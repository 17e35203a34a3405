// A walk through the page without a mouse.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { assertQuiet, close, open, person } from './lib/browser.mjs';
import { fill } from './lib/content.mjs';
import { Fixture } from './lib/fixture.mjs';

const fixture = new Fixture();
await fill(fixture);
const server = await fixture.serve();
after(close);

const focused = (page) => page.evaluate(() => document.activeElement?.textContent?.trim() ?? '');

/** Presses Tab until the focused element has this text. */
async function tabTo(page, text) {
	for (let presses = 0; presses < 200; presses++) {
		await page.keyboard.press('Tab');
		if ((await focused(page)).includes(text)) return;
	}
	assert.fail(`${text} cannot be reached with Tab`);
}

test('every view is reached, and the focus is seen everywhere', async () => {
	const one = await person();
	const page = await open(one, server);
	await page.locator('body').focus();
	await page.keyboard.press('Tab');
	assert.equal(await focused(page), 'Skip to the content');
	await page.keyboard.press('Enter');
	assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
	for (const [key, heading] of [['s', 'Sessions'], ['c', 'New conversation'], ['f', 'Files'], ['u', 'Undo'], ['r', 'Rules'], ['n', 'Now']]) {
		await page.evaluate(() => document.activeElement.blur());
		await page.keyboard.press('g');
		await page.keyboard.press(key);
		await page.getByRole('heading', { name: heading, exact: true, level: 1 }).waitFor();
		// The heading gets the focus, so that screen readers announce it.
		if (key !== 'c') await page.waitForFunction((text) => document.activeElement.textContent.includes(text), heading);
	}
	await page.keyboard.press('?');
	await page.getByRole('dialog').getByText('next and previous row or card').waitFor();
	await page.keyboard.press('Escape');
	await page.getByRole('dialog').waitFor({ state: 'hidden' });
	// Each stop of the Tab key in the frame has a ring.
	for (let stop = 0; stop < 8; stop++) {
		await page.keyboard.press('Tab');
		const ring = await page.evaluate(() => {
			const style = getComputedStyle(document.activeElement);
			return document.activeElement === document.body || style.outlineStyle !== 'none' || style.boxShadow !== 'none';
		});
		assert(ring, await focused(page));
	}
	await assertQuiet(one);
	await one.context.close();
});

test('from the list of sessions to a call, its undo and back, by keys alone', async () => {
	const one = await person();
	const page = await open(one, server, '/sessions');
	await page.locator('.session-row').first().waitFor();
	await page.keyboard.press('j');
	await page.keyboard.press('Enter');
	await page.locator('.call-row').nth(5).waitFor();
	await page.keyboard.press('/');
	assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Search calls');
	await page.keyboard.type('response.end');
	await page.getByText('calls found.').waitFor();
	await page.keyboard.press('Escape');
	for (let presses = 0; presses < 9 && !(await focused(page)).startsWith('#4 Edit '); presses++) await page.keyboard.press('j');
	assert.match(await focused(page), /^#4 Edit /);
	await page.keyboard.press('Enter');
	await page.getByRole('heading', { name: 'Edit #4' }).waitFor();
	await page.keyboard.press('u');
	const undo = page.getByRole('button', { name: /^Undo \(/ });
	await undo.waitFor();
	const before = fixture.read('src/index.js');
	await tabTo(page, 'Undo (1 change)');
	await page.keyboard.press('Enter');
	await page.locator('.card .state.completed').waitFor();
	assert.notEqual(fixture.read('src/index.js'), before);
	// The result has the focus, and offers a way back.
	await tabTo(page, 'Redo…');
	await page.keyboard.press('Enter');
	await page.getByRole('button', { name: /^Redo \(/ }).waitFor();
	await tabTo(page, 'Redo (1 change)');
	await page.keyboard.press('Space');
	await page.locator('.card .state.completed').waitFor();
	assert.equal(fixture.read('src/index.js'), before);
	await assertQuiet(one);
	await one.context.close();
});

test('a question is allowed and denied by keys', async () => {
	const one = await person();
	const page = await open(one, server);
	const client = await fixture.mcp('--permission-mode', 'default');
	const card = page.locator('article.question:not(.done)');
	/** Until the server has noted that a page is open, no one is asked. */
	const ask = async (command) => {
		for (;;) {
			const call = client.bash(command);
			const isAsked = await Promise.race([call.then(() => false), card.waitFor().then(() => true)]);
			if (isAsked) return call;
		}
	};
	/** The first press moves the focus; presses are ignored for a moment after the layout changed. */
	const press = async (key) => {
		while ((await card.count()) > 0) {
			await page.keyboard.press(key);
			await card.waitFor({ state: 'detached', timeout: 300 }).catch(() => {});
		}
	};
	const allowed = ask('echo allowed > allowed.txt');
	await card.waitFor();
	// A question that was scrolled out of sight comes back, and is not answered.
	const isSeen = () => card.evaluate((card) => card.getBoundingClientRect().top >= document.getElementById('main').getBoundingClientRect().top - 1);
	await page.setViewportSize({ width: 900, height: 420 });
	for (const key of ['a', 'Enter']) {
		await card.getByRole('button', { name: 'Allow once' }).focus();
		await page.evaluate(() => (document.getElementById('main').scrollTop = 9999));
		assert(!(await isSeen()), 'the question is still in sight');
		await page.keyboard.press(key);
		assert(await isSeen(), key);
	}
	assert.equal((await server.api('/questions')).questions.length, 1);
	await press('a');
	assert.equal((await allowed).failed, false);
	const denied = ask('echo denied > denied.txt');
	await card.waitFor();
	await press('d');
	assert.equal((await denied).failed, true);
	await client.end();
	await assertQuiet(one);
	await one.context.close();
});

test('replay is stepped through by keys', async () => {
	const one = await person();
	const session = (await server.api('/sessions')).sessions.find(({ calls }) => calls === 10).id;
	const page = await open(one, server, `/replay/${session}`);
	await page.getByText('Call 1 of 10').waitFor();
	await page.keyboard.press('ArrowRight');
	await page.getByText('Call 2 of 10').waitFor();
	await page.keyboard.press('e');
	await page.getByText('Call 6 of 10').waitFor();
	await page.keyboard.press('ArrowLeft');
	await page.getByText('Call 5 of 10').waitFor();
	await assertQuiet(one);
});
