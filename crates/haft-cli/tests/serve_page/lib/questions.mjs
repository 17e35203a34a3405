// Questions on the page, and clients that ask them.

/** A question that waits. */
export const OPEN = 'article.question:not(.done)';

/** Presses a button of the open question. Presses are ignored for a moment after the layout changed, so it presses until it counts. */
export async function press(page, name) {
	const card = page.locator(OPEN);
	while ((await card.count()) > 0) {
		await card.getByRole('button', { name }).click({ timeout: 1000 }).catch(() => {});
		await card.waitFor({ state: 'detached', timeout: 500 }).catch(() => {});
	}
}

/** A client whose questions the page is asked. */
export async function askingClient(fixture, page) {
	await page.locator('#connection.live').waitFor();
	const client = await fixture.mcp('--permission-mode', 'default');
	// The first calls may come before the server has noted that a page is open.
	for (let isAsked = false; !isAsked;) {
		const call = client.bash('echo asked > asked.txt');
		isAsked = await Promise.race([call.then(() => false), page.locator(OPEN).waitFor().then(() => true)]);
		if (isAsked) await press(page, 'Allow once');
		await call;
	}
	return client;
}
