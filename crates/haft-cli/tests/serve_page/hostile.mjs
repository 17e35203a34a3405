// Hostile names, contents, outputs and texts of models, which must remain text.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, test } from 'node:test';

import { assertQuiet, close, go, open, person } from './lib/browser.mjs';
import { Fixture } from './lib/fixture.mjs';
import { startModel } from './lib/model.mjs';

const MARKUP = '<img src=x onerror=alert(1)>';
const SVG = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script></svg>';
/** Bytes of the longest line. */
const LINE_BYTES = 10_000_000;
/** Elements in a view of hostile content. */
const MAX_ELEMENTS = 6_000;

const fixture = new Fixture();
const python = (script) => fixture.bash(`python3 - <<'END'\n${script}\nEND`);

// 1: file names.
await python(`
import os
for name in [b'<img src=x onerror=alert(1)>', b'<script>alert(1)<', b'javascript:alert(1)', b'a\\nb', b'\\x1b[31mred', b'\\xff\\xfe',
             '\\u202egnp.exe'.encode(), b'"onmouseover="alert(1)', b'&lt;b&gt;', b'..%2f..', 'zero\\u200bwidth'.encode()]:
    open(name, 'wb').write(b'x')
`);
// 2: contents and their differences.
writeFileSync(fixture.path('page.html'), 'before\n');
await python(`
open('page.html', 'w').write('''${MARKUP}\\n<script>alert(1)</script>\\n\\u202eevil\\u202c \\u2066x\\u2069\\n</td></tr></table>\\n''')
open('picture.svg', 'w').write('''${SVG}''')
open('fake.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n<script>alert(1)</script>')
open('broken.txt', 'wb').write(b'caf\\xe9 \\xff\\xfe\\n')
`);
// 3: output with escape sequences, links, clipboard and title sequences, direction marks, bytes that are not text.
await python(`
import sys
out = sys.stdout.buffer
out.write(b'${MARKUP}\\n')
out.write(b'\\x1b]8;;javascript:alert(1)\\x1b\\\\click here\\x1b]8;;\\x1b\\\\\\n')
out.write(b'\\x1b]52;c;ZXZpbA==\\x07copied\\n\\x1b]0;evil title\\x07\\x1b]1337;File=inline=1:AAAA\\x07\\n')
out.write(b'\\x1b[2J\\x1b[1;1H\\x1b[?1049h\\x1b[31mred\\x1b[0m plain\\x1bP+q544e\\x1b\\\\\\n')
out.write('\\u202eright to left\\u202c'.encode() + b'\\n\\xff\\xfe not text\\n\\r overwritten\\n\\x00\\x07\\x08')
out.write(b'</div></main><script>alert(1)</script>\\n')
`);
// 4: one line of many bytes.
await fixture.bash(`head -c ${LINE_BYTES} /dev/zero | tr '\\0' 'A' | tee long.txt; echo; echo after the line`);
// 5: arguments.
await fixture.bash(`: '${MARKUP}' "$(printf '\\033]52;c;eA==\\007')" 'javascript:alert(1)' ; exit 1`);

const model = await startModel([{ text: `${MARKUP}\n\n[a link](javascript:alert(1)) [b](data:text/html,<script>alert(1)</script>) ![c](http://evil.example/x.png)\n\n<iframe src="http://evil.example"></iframe>\n\n\u202eevil` }]);
fixture.settings(model.settings);
const server = await fixture.serve();
const { session: chat } = await server.api('/runs', { prompt: `${MARKUP} \u202etxet` });
const of = (call) => server.api(`/calls/${call}`).then(({ summary }) => summary.session);
after(close);

/** What is shown is only text: no elements made from it, no addresses that execute, no hidden characters. */
async function assertInert(page, what) {
	const found = await page.evaluate(() => {
		const bad = [];
		for (const element of document.querySelectorAll('script, img, svg, iframe, object, embed, link, style, base, meta[http-equiv], form[action]')) {
			const isOwn = element.closest('head') || (element.tagName === 'IMG' && element.src.startsWith('blob:'));
			if (!isOwn) bad.push(element.outerHTML.slice(0, 200));
		}
		for (const element of document.querySelectorAll('*')) {
			for (const { name, value } of element.attributes) {
				if (name.startsWith('on') || (['href', 'src', 'action', 'formaction'].includes(name) && !/^(#|blob:|data:,|https?:|main\.js|style\.css)/.test(value))) bad.push(`${name}=${value}`);
			}
		}
		const text = document.body.textContent;
		for (const [index, char] of [...text].entries())
			if (/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(char))
				bad.push(`hidden ${char.codePointAt(0).toString(16)} near ${[...text].slice(Math.max(0, index - 20), index).join('')}`);
		return { bad: bad.slice(0, 10), elements: document.querySelectorAll('*').length };
	});
	assert.deepEqual(found.bad, [], what);
	assert(found.elements < MAX_ELEMENTS, `${what}: ${found.elements} elements`);
}

test('hostile content is shown as text in every view', async () => {
	const one = await person();
	const page = await open(one, server);
	const views = ['/now', '/sessions', '/files', '/undo', '/undo/calls/1', '/undo/calls/2', '/rules', `/chat/${chat}`];
	for (let call = 1; call <= 5; call++) views.push(`/call/${call}`);
	for (const call of [1, 2]) views.push(`/session/${await of(call)}`, `/replay/${await of(call)}`, `/files/session/${await of(call)}`);
	for (const view of views) {
		await go(page, view);
		await page.locator('main').getByText(/./).first().waitFor();
		await assertInert(page, view);
	}
	// The content is there, as text.
	await go(page, '/call/3');
	await page.locator('.output').getByText(MARKUP).first().waitFor();
	await page.locator('.output').getByText('click here').first().waitFor();
	assert.equal(await page.locator('.output a').count(), 0);
	assert((await page.locator('.output .escape').count()) > 3, 'hidden characters are not shown');
	assert.equal(await page.title(), `Bash #3 · Haft`);
	await go(page, '/call/2');
	for (const name of ['page.html', 'picture.svg', 'fake.png', 'broken.txt']) {
		await page.locator('.tree-row').getByText(name, { exact: true }).click();
		await page.locator('section.change h3').getByText(name).waitFor();
		await page.waitForFunction(() => !document.querySelector('section.change [aria-busy=true]'));
		await assertInert(page, name);
	}
	await go(page, '/call/1');
	for (let row = 0; row < (await page.locator('.tree-row').count()); row++) {
		await page.locator('.tree-row button').nth(row).click();
		await page.waitForFunction(() => !document.querySelector('section.change [aria-busy=true]'));
		await assertInert(page, `name ${row}`);
	}
	await go(page, `/chat/${chat}`);
	await page.getByRole('log').getByText(MARKUP).nth(1).waitFor();
	await assertQuiet(one);
	assert(!one.requests.some((url) => url.includes('evil')));
	await one.context.close();
});

test('a line of ten million characters does not stop the page', async () => {
	const one = await person();
	const page = await open(one, server, '/call/4');
	await page.getByText('more character').first().waitFor();
	await assertInert(page, 'a long line');
	const whole = page.getByRole('button', { name: 'Show the whole output' });
	if (await whole.count()) {
		await whole.click();
		await page.getByRole('button', { name: 'Show more of the output' }).waitFor();
	}
	await assertInert(page, 'a long line, more of it');
	await assertQuiet(one);
	await one.context.close();
});

test('hostile output is text while it is written, and a hostile question, too', async () => {
	const one = await person();
	const page = await open(one, server);
	const call = fixture.bash(`printf '%b' '${MARKUP}\\n\\033]8;;javascript:alert(1)\\033\\\\link\\033]8;;\\033\\\\\\n\\0342\\0200\\0256evil\\n'; until [ -e go ]; do sleep 0.01; done`);
	await page.locator('article.run .output').getByText(MARKUP).waitFor();
	await assertInert(page, 'live output');
	writeFileSync(fixture.path('go'), '');
	await call;
	const client = await fixture.mcp('--permission-mode', 'default');
	const card = page.locator('article.question:not(.done)');
	for (;;) {
		const asked = client.bash(`echo '${MARKUP}' '\u202egpj.exe' > x`);
		if (await Promise.race([asked.then(() => false), card.waitFor().then(() => true)])) break;
	}
	await card.getByText(MARKUP).first().waitFor();
	await assertInert(page, 'a question');
	await assertQuiet(one);
});
