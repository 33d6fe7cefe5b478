// Tells from its first bytes what a file is, where its name does not.

/** How many first bytes {@link sniff} looks at. */
export const SNIFF_BYTES = 64;

/** What a file's first bytes say. */
export type Sniffed = "gguf" | "safetensors" | "html" | "git-lfs" | "unknown";

/** What the first bytes of a file say it is. */
export function sniff(head: Uint8Array): Sniffed {
	const text = String.fromCharCode(...head.subarray(0, SNIFF_BYTES));
	if (text.startsWith("GGUF")) return "gguf";
	if (/^(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|head|body|script|meta|\?xml|!--)/i.test(text)) return "html";
	if (text.startsWith("version https://git-lfs")) return "git-lfs";
	// A safetensors file is the header's length (8 bytes), and the header: a JSON object.
	if (text.charAt(8) === "{" && head[6] === 0 && head[7] === 0) return "safetensors";
	return "unknown";
}
