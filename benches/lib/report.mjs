// The document of a run as tables, for a terminal or for Markdown.

const number = (value, digits = 3) => {
	if (value === undefined) return "–";
	return Math.abs(value) >= 10 ** (digits - 1) ? value.toFixed(0) : value.toPrecision(digits);
};
const times = (value) => (value === undefined ? "–" : `${number(value, 2)}×`);
const percent = (value) => (value === undefined ? "–" : `${(100 * value).toFixed(0)} %`);
const mib = (bytes) => (bytes === undefined ? "–" : `${number(bytes / 2 ** 20)} MiB`);

/** Wall and CPU side by side; one where the system tells no CPU time. */
const both = ({ wall, cpu } = {}, format) =>
	cpu === undefined ? format(wall) : `${format(wall)} / ${format(cpu)}`;

function modelTable({ name, fileBytes, layers, vocab, format, embedding, read, engines }) {
	const shape = layers && `${layers} layers, vocabulary ${vocab}, ${format}, embedding ${embedding}, `;
	const others = engines.slice(1).some(({ firstIsFaster }) => firstIsFaster);
	const onGpu = engines.some(({ gpu }) => gpu);
	return {
		title: `${name}: ${shape ?? ""}${mib(fileBytes)}; reading memory ${both({ wall: read.gbPerSecond, cpu: read.gbPerCpuSecond }, number)} GB/s`,
		columns: [
			...["engine", "kernel", "threads", "decode tok/s", "CPU ms/token"],
			...["of roofline", "prefill tok/s", "CPU ms/token"],
			...(others ? ["sterna is faster: decode", "prefill"] : []),
			...(onGpu ? ["dispatches / submits / bytes read back a token"] : []),
		],
		rows: engines.map(({ name, kernel, threads, decode, prefill, shareOfRoofline, firstIsFaster, gpu }) => [
			name,
			kernel,
			threads ?? "–",
			number(decode.tokensPerSecond),
			number(decode.cpuMs),
			both(shareOfRoofline, percent),
			number(prefill.tokensPerSecond),
			number(prefill.cpuMs),
			...(others ? [both(firstIsFaster?.decode, times), both(firstIsFaster?.prefill, times)] : []),
			...(onGpu
				? [gpu ? `${number(gpu.dispatches)} / ${number(gpu.submits)} / ${number(gpu.bytesRead)}` : "–"]
				: []),
		]),
	};
}

/** A model's loads, each with what it is called. */
const loadsOf = ({ engines, stored, fileBytes }) => [
	...engines.map(({ name, load }) => ({ engine: name, load })),
	...(stored
		? [{ engine: "sterna, from storage", load: { ...stored, mbPerSecond: fileBytes / stored.ms / 1e3 } }]
		: []),
];

function loadTable(models) {
	return {
		title: "Loading",
		columns: ["model", "engine", "seconds", "MB/s", "most memory of the tab", "of the file", "weights"],
		rows: models.flatMap((model) =>
			loadsOf(model).map(({ engine, load }) => [
				model.name,
				engine,
				number(load.ms / 1000),
				number(load.mbPerSecond),
				mib(load.peakBytes),
				times(load.peakBytes && load.peakBytes / model.fileBytes),
				mib(load.weightBytes),
			]),
		),
	};
}

function kernelTable({ results }) {
	return {
		title: "Kernels",
		columns: ["matrix", "case", "engine", "ms", "GB/s", "of reading", "GMAC/s"],
		rows: results.map((result) => [
			`${result.shape} ${result.rows}×${result.cols}`,
			result.case,
			result.engine,
			number(result.p25Ms),
			number(result.gbPerS),
			percent(result.ofRead),
			number(result.gmacPerS),
		]),
	};
}

const tables = ({ kernels, models }) => [
	...(kernels ? [kernelTable(kernels)] : []),
	...models.map(modelTable),
	loadTable(models),
];

function describe({ machine, versions, plan, date }) {
	const { cpu, cores, memoryBytes, system, browser } = machine;
	const gib = Math.round(memoryBytes / 2 ** 30);
	return [
		`${cpu}, ${cores} cores, ${gib} GiB, ${system}, ${browser}; sterna ${versions.sterna}, wllama ${versions.wllama}; ${date.slice(0, 10)}.`,
		`Medians of ${plan.rounds} rounds in turn; decode: ${plan.tokens} tokens, prefill: ${plan.prompt} tokens. Pairs are by the clock / by CPU time; the roofline is reading a token's weights once.` +
			(plan.busy ? ` Other threads that keep the machine busy: ${plan.busy}.` : ""),
	];
}

const refusals = ({ models }) =>
	models.flatMap(({ name, refusals }) =>
		refusals.map(({ name: engine, refusal }) => `${engine} does not run ${name}: ${refusal}`),
	);

function textTable({ title, columns, rows }) {
	const cells = [columns, ...rows].map((row) => row.map(String));
	const widths = columns.map((_, i) => Math.max(...cells.map((row) => row[i].length)));
	const line = (row) =>
		row.map((cell, i) => (i ? cell.padStart(widths[i]) : cell.padEnd(widths[i]))).join("  ");
	return [title, ...cells.map(line)].join("\n");
}

function markdownTable({ title, columns, rows }) {
	const line = (row) => `| ${row.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
	const rule = `|${columns.map((_, i) => (i ? "---:" : "---")).join("|")}|`;
	return [`**${title}**`, "", line(columns), rule, ...rows.map(line)].join("\n");
}

/** The report as text for a terminal. */
export const asText = (document) =>
	[
		...describe(document),
		"",
		...tables(document).flatMap((table) => [textTable(table), ""]),
		...refusals(document),
	]
		.join("\n")
		.trimEnd();

/** The report as Markdown. */
export const asMarkdown = (document) =>
	[
		describe(document).join("\n"),
		...tables(document).map(markdownTable),
		...refusals(document).map((line) => `- ${line}`),
	].join("\n\n");
