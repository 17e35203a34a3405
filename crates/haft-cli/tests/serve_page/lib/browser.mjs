// Chromium, and pages that must break no policy and report no error.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { stopAll, TIMEOUT_MS, TOKENS } from './fixture.mjs';

const MODULES = process.env.HAFT_PAGE_NODE;
const require = createRequire(join(MODULES, 'x.js'));
const { chromium } = require('playwright-core');
const AXE = require.resolve('axe-core/axe.min.js');

/** What the console may report in a test that kills the server. */
const CONNECTION_LOST = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/;
/** The console reports even refusals that the page expects and shows. */
const REFUSED = /status of (401|403|404|409)/;

let browser;

export async function launch() {
	browser ??= await chromium.launch({
		executablePath: process.env.HAFT_CHROMIUM ?? '/usr/bin/chromium',
		// Containers run tests as root, for whom Chromium has no sandbox.
		args: ['--no-sandbox'],
	});
	return browser;
}

/** Ends the browser and all processes. */
export async function close() {
	await browser?.close();
	stopAll();
}

/** A person with a browser of their own. */
export async function person(options = {}) {
	const context = await (await launch()).newContext({ locale: 'en-GB', ...options });
	context.setDefaultTimeout(TIMEOUT_MS);
	const problems = [];
	const requests = [];
	context.on('page', (page) => {
		page.on('console', (message) => {
			if (['error', 'warning'].includes(message.type())) problems.push(`console: ${message.text()}`);
		});
		page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
		page.on('request', (request) => requests.push(request.url()));
		page.on('dialog', (dialog) => {
			problems.push(`dialog: ${dialog.message()}`);
			dialog.dismiss();
		});
	});
	await context.addInitScript(() => {
		window.violations = [];
		document.addEventListener('securitypolicyviolation', (event) => {
			window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
		});
	});
	return { context, problems, requests };
}

/** Opens a view and waits until it is there. */
export async function open(one, server, view = '/now', role = 'act') {
	const page = await one.context.newPage();
	await page.goto(server.url(view, role));
	await ready(page);
	return page;
}

/** Goes to another view of the page that is open. */
export async function go(page, view) {
	await page.evaluate((hash) => (location.hash = hash), `#${view}`);
	await page.locator(`main.view-${view.split('/')[1]} h1`).waitFor();
	await ready(page);
}

/** Waits until the view has its heading, the stream is open, and nothing is loading. */
export async function ready(page) {
	await page.locator('main h1').waitFor();
	await page.locator('#connection.live').waitFor();
	await page.waitForFunction(() => !document.querySelector('main [aria-busy=true], main .loading'));
}

/** Changes what the server answers to requests for a path, in which `*` stands for any name. */
export async function alter(one, server, path, change) {
	await one.context.route(`**/api/v1${path}`, async (route) => {
		const { pathname, search } = new URL(route.request().url());
		const answer = await server.api(pathname.slice('/api/v1'.length) + search);
		change(answer);
		await route.fulfill({ json: answer });
	});
}

/** Nothing was blocked by a policy, and nothing went wrong. */
export async function assertQuiet(one, allowed = []) {
	for (const page of one.context.pages()) assert.deepEqual(await page.evaluate(() => window.violations), []);
	const all = [REFUSED, ...allowed];
	assert.deepEqual(one.problems.filter((problem) => !all.some((pattern) => pattern.test(problem))), []);
	// Tokens are only in headers, and all requests go to the server itself.
	for (const url of one.requests) {
		assert(!Object.values(TOKENS).some((token) => url.split('#')[0].includes(token)), url);
		assert(/^(http:\/\/haft-[0-9a-f]{12}\.localhost:\d+\/|blob:|data:|file:)/.test(url), url);
	}
}

export { CONNECTION_LOST };

/** No serious or critical finding of axe-core. */
export async function assertAccessible(page, what) {
	// The page's policy would block a script element, but not what the debugger evaluates.
	await page.evaluate(require('node:fs').readFileSync(AXE, 'utf8'));
	const found = await page.evaluate(async () => {
		const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
		return violations
			.filter(({ impact }) => ['serious', 'critical'].includes(impact))
			.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary}`).join(' | ')}`);
	});
	assert.deepEqual(found, [], what);
}

/** The page does not scroll sideways. */
export async function assertFits(page, what) {
	const wide = await page.evaluate(() => {
		const root = document.scrollingElement;
		const main = document.getElementById('main');
		const over = root.scrollWidth > root.clientWidth + 1 || main.scrollWidth > main.clientWidth + 1;
		if (!over) return [];
		const reaches = [...document.querySelectorAll('body *')].filter((element) => element.getBoundingClientRect().right > innerWidth + 1);
		return reaches.slice(0, 5).map((element) => `${element.tagName}.${element.className} ${Math.round(element.getBoundingClientRect().right)}`);
	});
	assert.deepEqual(wide, [], what);
}
