/**
 * Renders streamed markdown block by block: blocks that are complete keep their DOM nodes, so that text can
 * be selected while more arrives and the work for a token does not grow with the answer.
 *
 * Model output is untrusted. Raw HTML in it is shown as text, and what marked produces passes DOMPurify with a
 * short list of tags: no images and no embedded content, since those would make requests to other servers.
 */
import DOMPurify from "dompurify";
import { Marked, type MarkedOptions, type Token } from "marked";

const ALLOWED_TAGS =
	"p br strong em del code pre blockquote ul ol li h1 h2 h3 h4 h5 h6 hr a table thead tbody tr th td input".split(
		" ",
	);
const ALLOWED_ATTR = ["href", "start", "align", "type", "checked", "disabled"];

const purifier = DOMPurify(window);
purifier.addHook("afterSanitizeAttributes", (node) => {
	if (node.tagName !== "A") return;
	node.setAttribute("target", "_blank");
	node.setAttribute("rel", "noopener noreferrer nofollow");
});

const marked = new Marked({
	gfm: true,
	renderer: {
		html: ({ text }) => escapeHtml(text),
		image: ({ text, href }) => escapeHtml(text || href),
	},
});

/** One rendered markdown text that can grow. */
export class MarkdownView {
	readonly element = document.createElement("div");
	readonly #options: MarkedOptions;
	#blocks: { raw: string; nodes: Node[] }[] = [];

	/** `lineBreaks`: whether a line break in the text is one on the screen, as in a chat, or not, as in a document. */
	constructor({ lineBreaks }: { lineBreaks: boolean }) {
		this.#options = { ...marked.defaults, breaks: lineBreaks };
		this.element.className = "prose";
	}

	/** Shows `text`, touching only the blocks that differ from what is shown. */
	update(text: string): void {
		const tokens = marked.lexer(text, this.#options);
		let same = 0;
		while (same < tokens.length && tokens[same]?.raw === this.#blocks[same]?.raw) same += 1;

		for (const { nodes } of this.#blocks.splice(same))
			for (const node of nodes) node.parentNode?.removeChild(node);
		for (const token of tokens.slice(same)) {
			const nodes = renderBlock(token);
			this.element.append(...nodes);
			this.#blocks.push({ raw: token.raw, nodes });
		}
	}
}

function renderBlock(token: Token): Node[] {
	const fragment = purifier.sanitize(marked.parser([token]), {
		ALLOWED_TAGS,
		ALLOWED_ATTR,
		ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
		RETURN_DOM_FRAGMENT: true,
	});
	return [...fragment.childNodes];
}

function escapeHtml(text: string): string {
	return text
		.replaceAll("&", "&amp;")
		.replaceAll("<", "&lt;")
		.replaceAll(">", "&gt;")
		.replaceAll('"', "&quot;");
}
