// Each kind of question with each of its answers.

import assert from 'node:assert/strict';
import { appendFileSync, copyFileSync, existsSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { assertQuiet, close, open, person } from './lib/browser.mjs';
import { Fixture } from './lib/fixture.mjs';
import { askingClient, OPEN, press } from './lib/questions.mjs';

const fixture = new Fixture();
const server = await fixture.serve();
let one;
let page;
let card;
let client;
after(close);

before(async () => {
	one = await person();
	page = await open(one, server);
	card = page.locator(OPEN);
	client = await askingClient(fixture, page);
});

/** The call is not asked about. */
async function assertUnasked(call) {
	assert.equal(await Promise.race([call.then(() => 'done'), card.waitFor().then(() => 'asked')]), 'done');
}

test('what is allowed for a session or always is not asked again', async () => {
	const first = client.bash('touch a');
	await card.getByText('remember:').waitFor();
	const [{ body }] = (await server.api('/questions')).questions;
	await card.getByText(body.rule, { exact: true }).waitFor();
	await press(page, 'Allow for session');
	assert.equal((await first).failed, false);
	await page.getByText('Allowed for the session.').waitFor();
	await assertUnasked(client.bash('touch a'));
	assert(!existsSync(fixture.config), 'a rule was added');
	// Another session is asked.
	const other = await fixture.mcp('--permission-mode', 'default');
	const second = other.bash('touch a');
	await card.waitFor();
	await press(page, 'Always allow');
	assert.equal((await second).failed, false);
	await page.getByText('Always allowed.').getByText(body.rule).waitFor();
	assert(readFileSync(fixture.config, 'utf8').includes(body.rule));
	const later = await fixture.mcp('--permission-mode', 'default');
	await assertUnasked(later.bash('touch a'));
	for (const ended of [other, later]) await ended.end();
	await assertQuiet(one);
});

test('a question about a file shows what would change in it', async () => {
	fixture.write('b.txt', 'one\ntwo\nthree\n');
	const file = fixture.path('b.txt');
	await client.call('Read', { file_path: file });
	const edit = client.call('Edit', { file_path: file, old_string: 'two', new_string: 'TWO' });
	await card.getByRole('heading', { name: 'Edit b.txt?' }).waitFor();
	assert.deepEqual(await card.locator('tr.removed td:last-child, tr.added td:last-child').allTextContents(), ['−two', '+TWO']);
	await press(page, 'Allow once');
	assert.equal((await edit).failed, false);
	assert.equal(fixture.read('b.txt'), 'one\nTWO\nthree\n');
	const write = client.call('Write', { file_path: fixture.path('new.txt'), content: 'a new file\n' });
	await card.getByRole('heading', { name: 'Write new.txt?' }).waitFor();
	await card.getByText('new → 11 bytes').waitFor();
	await card.locator('tr.added').getByText('a new file').waitFor();
	await press(page, 'Deny');
	assert.equal((await write).failed, true);
	assert(!existsSync(fixture.path('new.txt')));
	await assertQuiet(one);
});

test('an address is shown before it is reached', async () => {
	const url = 'https://registry.npmjs.invalid/a?b=c';
	const fetched = client.call('WebFetch', { url, prompt: 'What is there?' });
	await card.getByRole('heading', { name: 'Fetch this page?' }).waitFor();
	await card.getByText(url).first().waitFor();
	await press(page, 'Deny');
	assert.equal((await fetched).failed, true);
	// A command is asked about when it connects, and waits.
	const scoped = await fixture.mcp();
	const command = [
		'exec 3<>/dev/tcp/127.0.0.1/${HTTPS_PROXY##*:}',
		"printf 'CONNECT registry.npmjs.invalid:443 HTTP/1.1\\r\\n\\r\\n' >&3",
		'head -1 <&3',
	].join('\n');
	const connected = scoped.bash(command);
	await card.getByRole('heading', { name: 'Let a command reach registry.npmjs.invalid:443?' }).waitFor();
	await card.getByText('HTTPS_PROXY').waitFor();
	await card.getByText('“Allow for session” remembers:').waitFor();
	assert.equal(await card.getByRole('button', { name: 'Always allow' }).count(), 0);
	await press(page, 'Allow for session');
	// It was let through; there is no such host.
	assert.match((await connected).text, /502/);
	const again = scoped.bash(command);
	await assertUnasked(again);
	assert.match((await again).text, /502/);
	await scoped.end();
	await assertQuiet(one);
});

test('a tool of a server is named, whatever its arguments are called, and its numbers are exact', async () => {
	const echo = fixture.path('../echo.py');
	copyFileSync(new URL('../it/telemetry/echo_server.py', import.meta.url), echo);
	appendFileSync(fixture.config, `\n[tools.mcp_servers.evil]\ncommand = "python3"\nargs = [${JSON.stringify(echo)}]\n`);
	const user = await fixture.mcp('--permission-mode', 'default');
	const number = '12345678901234567891';
	for (const name of ['command', 'url', 'file_path']) {
		const call = user.call('mcp__evil__meta', { [name]: 'ls', amount: JSON.rawJSON(number) });
		await card.getByRole('heading', { name: 'Allow mcp__evil__meta?' }).waitFor();
		await card.getByText(number).first().waitFor();
		await press(page, 'Deny');
		assert.equal((await call).failed, true);
	}
	await user.end();
	await assertQuiet(one);
});

test('choices are made on the card', async () => {
	const chooser = await fixture.mcp('--tools', 'AskUserQuestion');
	const options = (...labels) => labels.map((label) => ({ label, description: `It is ${label}.` }));
	const questions = [
		{ question: 'Which colour?', header: 'Colour', multiSelect: false, options: options('Red', 'Blue') },
		{ question: 'Which sizes?', header: 'Sizes', multiSelect: true, options: options('Small', 'Large') },
	];
	const asked = chooser.call('AskUserQuestion', { questions });
	await card.getByRole('group', { name: 'Which colour?' }).getByRole('radio', { name: 'Blue' }).check();
	// Without an answer to the second question nothing is sent.
	await card.getByRole('button', { name: 'Send answers' }).click();
	const sizes = card.getByRole('group', { name: 'Which sizes?' });
	await page.waitForFunction(() => document.activeElement.value === 'Small');
	assert.equal((await server.api('/questions')).questions.length, 1);
	for (const name of ['Small', 'Large']) await sizes.getByRole('checkbox', { name }).check();
	await sizes.getByLabel('Another answer').fill('Giant');
	await press(page, 'Send answers');
	const { failed, text } = await asked;
	assert(!failed && /Blue/.test(text) && /Small.*Large.*Giant/s.test(text) && !/Red/.test(text), text);
	const declined = chooser.call('AskUserQuestion', { questions });
	await card.waitFor();
	await press(page, 'Decline');
	assert.equal((await declined).failed, true);
	await chooser.end();
	await assertQuiet(one);
});

test('what is not shown to its end cannot be allowed', async () => {
	const lines = Array.from({ length: 120 }, (_, line) => `echo line ${line}`);
	const call = client.bash([...lines, 'echo all > all.txt'].join('\n'));
	await card.getByText('echo line 0', { exact: true }).first().waitFor();
	const allowing = ['Allow once', 'Allow for session', 'Always allow'].map((name) => card.getByRole('button', { name }));
	assert.equal(await card.getByText('echo all > all.txt').count(), 0);
	const assertClosed = async () => {
		for (const button of allowing) if (await button.count()) assert(await button.isDisabled());
		assert.equal(await card.getAttribute('aria-busy'), null);
	};
	await assertClosed();
	// Neither a press that does not ask whether the button can be pressed, nor a key.
	for (const button of allowing) if (await button.count()) await button.dispatchEvent('click');
	await card.focus();
	for (const key of ['a', 'a', 'Enter', 'a']) {
		await page.keyboard.press(key);
		await assertClosed();
		if (await card.getByText('echo all > all.txt').count()) assert.fail(`${key} showed the rest`);
		await card.focus();
	}
	assert.equal((await server.api('/questions')).questions.length, 1);
	// The reason repeats the command and is cut, too: each press shows one part.
	const rest = card.getByRole('button', { name: 'Show the rest' });
	await rest.click();
	await card.getByText('echo all > all.txt').first().waitFor();
	while (await rest.isVisible()) {
		await assertClosed();
		await rest.click();
	}
	await press(page, 'Allow once');
	assert.equal((await call).failed, false);
	assert.equal(fixture.read('all.txt'), 'all\n');
	await client.end();
	await assertQuiet(one);
});
