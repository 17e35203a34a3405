// Undo, redo and rules on the page.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { after, test } from 'node:test';

import { assertQuiet, close, go, open, person } from './lib/browser.mjs';
import { Fixture } from './lib/fixture.mjs';

const fixture = new Fixture();
const mcp = await fixture.mcp();
await mcp.bash('echo one > a.txt; echo one > b.txt');
await mcp.bash('echo two > a.txt; echo two > b.txt');
await mcp.bash('echo three > a.txt; mkdir d; echo x > d/c.txt');
await mcp.end();
const server = await fixture.serve();
const session = (await server.api('/sessions')).sessions[0].id;
after(close);

/** Presses the button that performs the plan, once the plan is shown. */
async function perform(page, name) {
	await page.getByRole('button', { name }).click();
	await page.locator('.card .state.completed').waitFor();
}

test('a call is undone with its plan, and the undo is undone', async () => {
	const one = await person();
	const page = await open(one, server, '/call/3');
	await page.getByRole('link', { name: 'Undo…' }).click();
	await page.locator('.tree-row').getByText('a.txt').click();
	await page.locator('tr.removed').getByText('three').waitFor();
	await perform(page, 'Undo (3 changes)');
	assert.equal(fixture.read('a.txt'), 'two\n');
	assert(!existsSync(fixture.path('d')));
	await page.getByRole('link', { name: 'Redo…' }).waitFor();
	await go(page, '/undo');
	await page.getByRole('link', { name: 'Redo the last undo here…' }).click();
	await page.getByRole('button', { name: /^Redo \(/ }).waitFor();
	await go(page, `/undo/calls/${(await server.api('/calls')).calls[0].id}`);
	await page.getByRole('heading', { name: 'Redo what #4 undid' }).waitFor();
	await perform(page, /^Redo \(/);
	assert.equal(fixture.read('a.txt'), 'three\n');
	assert.equal(fixture.read('d/c.txt'), 'x\n');
	await assertQuiet(one);
	await one.context.close();
});

test('only the paths that are selected come back', async () => {
	const one = await person();
	const page = await open(one, server, '/undo/calls/3');
	await page.getByRole('button', { name: 'Undo (3 changes)' }).waitFor();
	// What is left out keeps the directory around it.
	await page.getByRole('checkbox', { name: 'Include d/c.txt' }).uncheck();
	await page.getByRole('button', { name: 'Undo (1 change)' }).waitFor();
	await page.getByRole('checkbox', { name: 'Include d/c.txt' }).check();
	await page.getByRole('button', { name: 'Undo (3 changes)' }).waitFor();
	await page.getByRole('checkbox', { name: 'Include a.txt' }).uncheck();
	await perform(page, 'Undo (2 changes)');
	assert(!existsSync(fixture.path('d')));
	assert.equal(fixture.read('a.txt'), 'three\n');
	await assertQuiet(one);
	await one.context.close();
});

test('a point in time is chosen on the timeline', async () => {
	const one = await person();
	const page = await open(one, server, `/undo/session/${session}`);
	const slider = page.getByRole('slider', { name: 'Point in time' });
	await page.getByText('Now: nothing would be undone.').waitFor();
	await slider.focus();
	await page.keyboard.press('Home');
	await page.getByText('Before the first call').waitFor();
	await page.getByRole('button', { name: /^Undo \(/ }).waitFor();
	await page.keyboard.press('ArrowRight');
	await page.getByText('Right after #1 Bash').waitFor();
	await perform(page, /^Undo \(/);
	assert.deepEqual([fixture.read('a.txt'), fixture.read('b.txt')], ['one\n', 'one\n']);
	await assertQuiet(one);
	await one.context.close();
});

test('what changed while the plan was shown is not undone unseen', async () => {
	const one = await person();
	await fixture.bash('echo four > e.txt');
	const { id } = (await server.api('/calls')).calls[0];
	const page = await open(one, server, `/undo/calls/${id}`);
	const button = page.getByRole('button', { name: 'Undo (1 change)' });
	await button.waitFor();
	fixture.write('e.txt', 'mine\n');
	await button.click();
	await page.getByText('Something changed since this plan was shown').waitFor();
	await page.getByRole('heading', { name: 'Changed since', exact: true }).waitFor();
	assert(await button.isDisabled());
	assert.equal(fixture.read('e.txt'), 'mine\n');
	await page.getByLabel('Overwrite later changes').check();
	await perform(page, 'Undo (1 change)');
	assert(!existsSync(fixture.path('e.txt')));
	await assertQuiet(one);
	await one.context.close();
});

test('a merge is shown before it is made', async () => {
	const one = await person();
	fixture.write('m.txt', '1\n2\n3\n4\n5\n6\n');
	await fixture.bash('sed -i s/1/one/ m.txt');
	fixture.write('m.txt', 'one\n2\n3\n4\n5\nsix\n');
	const { id } = (await server.api('/calls')).calls[0];
	const page = await open(one, server, `/undo/calls/${id}`);
	await page.getByLabel('Merge with later changes').check();
	await page.getByRole('heading', { name: 'Merged with later changes' }).waitFor();
	await page.locator('tr.removed').getByText('one').waitFor();
	assert.deepEqual(await page.locator('tr.added td.code').allInnerTexts(), ['+1']);
	await perform(page, 'Undo (1 change)');
	assert.equal(fixture.read('m.txt'), '1\n2\n3\n4\n5\nsix\n');
	await assertQuiet(one);
	await one.context.close();
});

test('rules are added, explained and removed', async () => {
	const one = await person();
	const page = await open(one, server, '/rules');
	await page.getByLabel('Action').selectOption('deny');
	await page.getByLabel('Rule', { exact: true }).fill('Bash(curl *)');
	await page.getByRole('button', { name: 'Add' }).click();
	await page.getByText('Added:').waitFor();
	assert.match(readFileSync(fixture.config, 'utf8'), /Bash\(curl \*\)/);
	await page.getByLabel('Tool').selectOption('Bash');
	await page.getByLabel('Arguments as JSON').fill('{"command": "curl example.com"}');
	await page.getByRole('button', { name: 'Test' }).click();
	await page.getByText('⊘ Denied').waitFor();
	await page.getByRole('button', { name: 'Remove' }).click();
	await page.getByRole('button', { name: 'Remove: sure?' }).click();
	await page.getByText('Removed:').waitFor();
	assert.doesNotMatch(readFileSync(fixture.config, 'utf8'), /curl/);
	await page.getByLabel('Rule', { exact: true }).fill('Bash((');
	await page.getByRole('button', { name: 'Add' }).click();
	await page.locator('p.error').first().waitFor();
	// What was refused can be corrected.
	assert.equal(await page.getByLabel('Rule', { exact: true }).inputValue(), 'Bash((');
	await assertQuiet(one, [/status of 400/]);
});
