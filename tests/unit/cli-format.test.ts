import assert from "node:assert/strict";
import { test } from "node:test";
import { f32Number, formatBytes, formatCount, formatTable } from "../../pkg-template/src/cli/format.js";

test("f32 values read back as they were", () => {
	const bits = new Uint32Array(1);
	const value = new Float32Array(bits.buffer);
	for (let i = 0; i < 20_000; i += 1) {
		bits[0] = (i * 2_654_435_761) >>> 0;
		const number = value[0]!;
		if (!Number.isFinite(number)) continue;
		assert.ok(
			Object.is(Math.fround(JSON.parse(JSON.stringify(f32Number(number)))), number === 0 ? 0 : number),
		);
	}
	assert.equal(f32Number(Math.fround(0.1)), 0.1);
});

test("numbers for people", () => {
	assert.equal(formatBytes(0), "0 B");
	assert.equal(formatBytes(1536), "1.5 KiB");
	assert.equal(formatBytes(3 * 2 ** 30), "3.0 GiB");
	assert.equal(formatCount(134_515_008), "134.5 M");
	assert.equal(
		formatTable([
			["a", "bb"],
			["ccc", "d"],
		]),
		"a    bb\nccc  d",
	);
});
