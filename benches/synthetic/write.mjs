// Writes a checkpoint of a real model's shape with random weights: the numbers mean nothing, every size is
// true. The weights depend on the seed alone.
import { closeSync, openSync, renameSync, writeSync } from "node:fs";
import { ENCODINGS, random, tensorBytes } from "./encodings.mjs";
import { header, padded } from "./gguf-header.mjs";
import { metadata, tensors } from "./shapes.mjs";

const F32 = 0;
const PIECE_BYTES = 1 << 20;
const EMBEDDING_DEVIATION = 0.02;

/** Tensors start at one of this many places in their piece, so that no two are alike. */
const STARTS = 2048;

/** Some random blocks, of which every tensor of the encoding repeats a part. */
function randomPiece(format, scale, next) {
	const { bytes, fill } = ENCODINGS[format];
	const count = Math.floor(PIECE_BYTES / bytes);
	const piece = new Uint8Array((count + STARTS) * bytes);
	for (let at = 0; at < piece.length; at += bytes) fill(piece.subarray(at, at + bytes), next, scale);
	return { piece, bytes, length: count * bytes };
}

/**
 * Writes the file `path`, which appears when it is complete.
 *
 * @param options `shape`: a shape of `shapes.mjs`, with other `layers` or `vocab` as wanted; `arch`: its name in
 * the file; `format` and `embedding`: names of `encodings.mjs`; `seed`: a number
 * @returns the bytes written
 */
export function writeSynthetic(path, { shape, arch, format, embedding, seed = 1 }) {
	// Products of normalised activations with such weights are of order 1.
	const scale = 1 / Math.sqrt((shape.hidden * 2) / 3);
	const next = random(seed);
	const pieces = {
		ternary: randomPiece(format, scale, next),
		embedding: randomPiece(embedding, EMBEDDING_DEVIATION, next),
	};
	const formats = { ternary: format, embedding };
	const list = tensors(shape).map((tensor) => {
		const elements = tensor.dims.reduce((product, dim) => product * dim);
		const encoding = formats[tensor.kind];
		return {
			...tensor,
			typeId: encoding ? ENCODINGS[encoding].typeId : F32,
			bytes: encoding ? tensorBytes(encoding, elements) : 4 * elements,
		};
	});

	const partial = `${path}.partial`;
	const file = openSync(partial, "w");
	let written = 0;
	const write = (bytes) => {
		written += writeSync(file, bytes);
	};
	const repeat = ({ piece, bytes, length }, total) => {
		const start = (next() % STARTS) * bytes;
		for (let left = total; left > 0; left -= length)
			write(piece.subarray(start, start + Math.min(left, length)));
	};
	write(header(metadata(shape, arch), list));
	for (const { kind, bytes } of list) {
		if (kind === "norm") write(new Uint8Array(new Float32Array(bytes / 4).fill(1).buffer));
		else {
			const tail = ENCODINGS[formats[kind]].tail?.(scale) ?? new Uint8Array();
			repeat(pieces[kind], bytes - tail.length);
			write(tail);
		}
		write(Buffer.alloc(padded(written) - written));
	}
	closeSync(file);
	renameSync(partial, path);
	return written;
}
