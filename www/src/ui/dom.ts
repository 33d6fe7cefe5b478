/** Typed access to the elements of index.html and a small builder for those that the page makes itself. */

type ElementClass<T extends Element> = { new (): T; readonly name: string };

/** The element with this id, which index.html must hold as an instance of `type`. */
export function byId<T extends HTMLElement>(id: string, type: ElementClass<T>): T {
	const found = document.getElementById(id);
	if (!(found instanceof type)) throw new Error(`index.html has no #${id} of type ${type.name}`);
	return found;
}

type Properties<T> = Partial<Omit<T, "attributes" | "dataset" | "style">> & {
	attributes?: Record<string, string>;
};

/** Creates an element. Strings among the children become text nodes, never markup. */
export function el<K extends keyof HTMLElementTagNameMap>(
	tag: K,
	properties: Properties<HTMLElementTagNameMap[K]> = {},
	...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
	const { attributes = {}, ...rest } = properties;
	const made = Object.assign(document.createElement(tag), rest);
	for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
	made.append(...children);
	return made;
}
