// A session with calls of all kinds, for the tests that look at every view.

import { writeFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';

const crcTable = Array.from({ length: 256 }, (_, byte) => {
	for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
	return byte >>> 0;
});

function chunk(kind, data) {
	const body = Buffer.concat([Buffer.from(kind), data]);
	const crc = body.reduce((sum, byte) => (sum >>> 8) ^ crcTable[(sum ^ byte) & 255], 0xffffffff) ^ 0xffffffff;
	const framed = Buffer.alloc(body.length + 8);
	framed.writeUInt32BE(data.length);
	body.copy(framed, 4);
	framed.writeUInt32BE(crc >>> 0, body.length + 4);
	return framed;
}

/** A picture in one colour. */
export function picture(width, height, [red, green, blue]) {
	const header = Buffer.alloc(13);
	header.writeUInt32BE(width);
	header.writeUInt32BE(height, 4);
	header.set([8, 2], 8);
	const row = [0, ...Array.from({ length: width }, () => [red, green, blue]).flat()];
	const rows = Buffer.from(Array.from({ length: height }, () => row).flat());
	return Buffer.concat([
		Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
		chunk('IHDR', header),
		chunk('IDAT', deflateSync(rows)),
		chunk('IEND', Buffer.alloc(0)),
	]);
}

const INDEX = `import { createServer } from 'node:http';

const port = Number(process.env.PORT ?? 8080);

createServer((request, response) => {
  response.end('hello');
}).listen(port);
`;

/** Makes the calls; returns the numbers of those that the tests name. */
export async function fill(fixture) {
	fixture.settings('[permissions]\ndeny = [\n  "Bash(rm -rf *)",\n]\nask = ["Bash(git push *)"]\n');
	writeFileSync(fixture.path('logo.png'), picture(96, 48, [40, 90, 160]));
	writeFileSync(fixture.path('green.png'), picture(96, 48, [40, 150, 90]));
	const mcp = await fixture.mcp();
	const file = fixture.path('src/index.js');
	await mcp.bash('mkdir -p src/lib test docs && echo "# Server" > README.md');
	await mcp.call('Write', { file_path: file, content: INDEX });
	await mcp.call('Read', { file_path: file });
	await mcp.call('Edit', { file_path: file, old_string: "response.end('hello');", new_string: "response.end(`hello ${request.url}`);" });
	await mcp.bash('cp green.png logo.png');
	await mcp.bash('rm -rf docs');
	await mcp.bash('echo "1 test failed: expected hello" >&2; exit 1');
	await mcp.bash("for i in $(seq 1 8); do echo \"export const value$i = $i;\" > src/lib/value$i.js; done");
	await mcp.bash("printf '\\033[1m> test\\033[0m\\n\\033[32mok\\033[0m 31 tests passed\\n'; seq 1 200");
	await mcp.bash('mv src/lib/value8.js test/last.js && chmod 755 test/last.js');
	await mcp.end();
	return { edit: 4, image: 5, denied: 6, failed: 7, many: 8, output: 9 };
}
