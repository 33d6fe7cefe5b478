// `sterna inspect`

import { defined } from "../defined.js";
import { describeSource } from "../files/source.js";
import { inspectModel } from "../inspect.js";
import { engineLoadOptions } from "../load-options.js";
import { nodePlatform } from "../node-platform.js";
import type { KvCacheFormat } from "../types.js";
import type { InspectReport } from "../wasm-api.js";
import { formatBytes, formatCount, formatTable } from "./format.js";
import { print, printJson } from "./output.js";

interface InspectOptions {
	context?: number;
	kv?: KvCacheFormat;
	tensors?: boolean;
	metadata?: boolean;
	json?: boolean;
}

function overview(report: InspectReport): string[][] {
	const { config, memory } = report;
	const rows = [
		["format", report.format],
		["architecture", report.architecture],
		["supported", report.supported ? "yes" : `no: ${report.problem}`],
		["parameters", formatCount(report.parameters)],
		["weights file", formatBytes(report.fileBytes)],
	];
	if (config) {
		rows.push(
			["layers", String(config.numLayers)],
			["hidden size", `${config.hiddenSize}, feed-forward ${config.intermediateSize} (${config.activation})`],
			["heads", `${config.numHeads} of ${config.headDim}, ${config.numKvHeads} for keys and values`],
			["vocabulary", String(config.vocabSize)],
			["context", `${config.maxContext} tokens, rope ${config.rope.theta} (${config.rope.scaling.type})`],
			["ternary inputs", config.linearInput],
		);
	}
	if (memory) {
		const parts = `weights ${formatBytes(memory.weights)}, keys and values ${formatBytes(memory.kvCache)}`;
		rows.push([
			"memory needed",
			`${formatBytes(memory.total)} (${parts} for ${memory.contextLength} tokens)`,
		]);
	}
	return rows;
}

function encodings(report: InspectReport): string[][] {
	const rows = report.encodings.map(({ encoding, tensors, parameters, bytes }) => [
		encoding,
		String(tensors),
		formatCount(parameters),
		formatBytes(bytes),
	]);
	return [["encoding", "tensors", "parameters", "size"], ...rows];
}

function tensors(report: InspectReport): string[][] {
	const rows = report.tensors.map(({ name, shape, encoding, bytes, offset }) => [
		name,
		`[${shape.join(", ")}]`,
		encoding,
		formatBytes(bytes),
		String(offset),
	]);
	return [["tensor", "shape", "encoding", "size", "offset"], ...rows];
}

/** Prints what a model is. */
export async function inspect(source: string, options: InspectOptions, signal: AbortSignal): Promise<void> {
	const { access } = engineLoadOptions({}, source);
	const { report } = await inspectModel(
		nodePlatform(),
		{
			source: await describeSource(source, { hasFileSystem: true, endpoint: access.hub.endpoint }),
			options: defined({ contextLength: options.context, kvCache: options.kv }),
			access,
		},
		signal,
	);
	if (options.json) {
		await printJson(report);
		return;
	}
	const tables = [overview(report), encodings(report)];
	if (options.metadata) tables.push(report.metadata);
	if (options.tensors) tables.push(tensors(report));
	await print(`${tables.map(formatTable).join("\n\n")}\n`);
}
