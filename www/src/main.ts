/** The chat page: makes its parts and connects them. Each part knows only what it is given here. */
import "./styles/index.css";
import { Chat } from "./chat/chat.ts";
import { Composer } from "./chat/composer.ts";
import { SettingsPanel } from "./chat/settings-panel.ts";
import { showSuggestions } from "./chat/suggestions.ts";
import { acceptDrops } from "./model/drop-target.ts";
import { explain, explainLoad, isLoss } from "./model/errors.ts";
import { LoadProgressView } from "./model/load-progress.ts";
import { ModelDialog } from "./model/model-dialog.ts";
import { type HeldModel, ModelHost } from "./model/model-host.ts";
import { embeddedModel, type NamedSource } from "./model/sources.ts";
import { prepareOffline } from "./offline/offline.ts";
import { prepareAbout } from "./ui/about.ts";
import { Announcer } from "./ui/announcer.ts";
import { Banner, type Trouble } from "./ui/banner.ts";
import { byId } from "./ui/dom.ts";
import { SidePanel } from "./ui/side-panel.ts";
import { StickToBottom } from "./ui/stick-to-bottom.ts";

const transcript = byId("transcript", HTMLOListElement);
const welcome = byId("welcome", HTMLElement);
const modelName = byId("model-name", HTMLElement);
const modelState = byId("model-state", HTMLElement);

const banner = new Banner(byId("banner", HTMLElement));
const announcer = new Announcer(byId("live", HTMLElement));
const settings = new SettingsPanel(byId("settings-form", HTMLFormElement));
const progress = new LoadProgressView();
const scroll = new StickToBottom(
	byId("scroller", HTMLElement),
	transcript,
	byId("jump-to-latest", HTMLButtonElement),
);
new SidePanel(byId("settings", HTMLDialogElement), byId("toggle-settings", HTMLButtonElement));
prepareAbout();

const host = new ModelHost({
	onLoading: showLoading,
	onProgress: (event) => progress.update(event),
	onModel: showModel,
	onLoadError: (error, wanted) => banner.show(loadTrouble(error, wanted)),
});

const chat = new Chat({
	transcript,
	announcer,
	model: () => host.current,
	settings: () => settings.value,
	onRunning: (running) => {
		composer.running = running;
	},
	onError: (error, held) => banner.show(answerTrouble(error, held)),
});

const composer = new Composer({ onSend: ask, onStop: () => chat.stop() });
const enableSuggestions = showSuggestions(byId("suggestions", HTMLElement), (question) => {
	composer.focus();
	ask(question);
});

const models = new ModelDialog({
	onChoice: (wanted) => {
		load(wanted);
		composer.focus();
	},
	onFilesWithoutModel: () =>
		banner.show({
			title: "There is no model among these files",
			message:
				"Choose a .gguf file, or .safetensors files together with config.json and the tokenizer's files.",
		}),
});

byId("open-models", HTMLButtonElement).addEventListener("click", () => models.open(host.current));
byId("cancel-load", HTMLButtonElement).addEventListener("click", () => host.cancel());
byId("pause-load", HTMLButtonElement).addEventListener("click", () => host.togglePause());
byId("new-chat", HTMLButtonElement).addEventListener("click", startOver);
acceptDrops(byId("drop-overlay", HTMLElement), (picked) => models.takeFiles(picked));
document.addEventListener("keydown", (event) => {
	// In an open dialog Esc closes the dialog, and in an input method it ends the composition.
	if (event.key === "Escape" && !event.isComposing && !document.querySelector("dialog:modal")) chat.stop();
});

composer.focus();
const preparing = prepareOffline((switchOver) =>
	banner.show({
		title: "A new version of this page is ready",
		message: "It takes effect when the page is loaded again. Your models stay.",
		action: { label: "Load it", run: switchOver },
	}),
);
// Where the server does not isolate the page, it is loaded once more before anything else.
if (!crossOriginIsolated) await preparing;
load(embeddedModel());

function load(wanted: NamedSource): void {
	banner.clear();
	void host.load(wanted);
}

function ask(question: string): void {
	banner.clear();
	chat.ask(question);
	welcome.hidden = !chat.isEmpty;
	scroll.toEnd();
}

function startOver(): void {
	chat.clear();
	banner.clear();
	welcome.hidden = false;
	composer.focus();
}

function showLoading(name: string | undefined): void {
	if (name === undefined) progress.hide();
	else progress.show(name);
	if (!host.current) {
		modelName.textContent = name ? `Loading ${name}` : "No model";
		modelState.dataset.state = name ? "loading" : "none";
	}
}

function showModel(held: HeldModel | undefined): void {
	modelName.textContent = held?.name ?? "No model";
	modelState.dataset.state = held ? "ready" : "none";
	composer.ready = held !== undefined;
	enableSuggestions(held !== undefined);
	if (!held) return;
	announcer.say(`${held.name} is ready.`);
	if (!canChat(held)) banner.show(cannotChat(held));
	if (!chat.isEmpty) chat.note(`${held.name} answers from here on.`);
}

function canChat({ model }: HeldModel): boolean {
	return model.info.hasTokenizer && model.info.hasChatTemplate;
}

/** A model that was not made to chat: the engine runs it, but there is no conversation to have with it. */
function cannotChat(held: HeldModel): Trouble {
	const { hasTokenizer } = held.model.info;
	return {
		title: `${held.name} cannot chat`,
		message: hasTokenizer
			? "This model continues text: it brings no chat template, as base models do not."
			: "This model brings no tokenizer, so it can take no text.",
		advice: hasTokenizer
			? "Choose a model that is made for chats, often named “instruct” or “chat”."
			: "Load its folder, with the tokenizer's files, or choose another model.",
		action: { label: "Choose another model", run: () => models.open(host.current) },
	};
}

function answerTrouble(error: unknown, held: HeldModel): Trouble {
	if (!canChat(held)) return cannotChat(held);
	const trouble: Trouble = { title: "The answer could not be given", ...explain(error) };
	if (!isLoss(error)) return trouble;
	return { ...trouble, action: { label: `Load ${held.name} again`, run: () => load(held.origin) } };
}

function loadTrouble(error: unknown, wanted: NamedSource): Trouble {
	const trouble: Trouble = { title: `${wanted.name} could not be loaded`, ...explainLoad(error) };
	const { current } = host;
	if (!current) return { ...trouble, action: { label: "Try again", run: () => load(wanted) } };
	if (trouble.code !== "out_of_memory")
		return { ...trouble, advice: `${trouble.advice ?? ""} ${current.name} is still here.`.trim() };
	const unloadFirst = () => {
		host.unload();
		load(wanted);
	};
	return {
		...trouble,
		advice: `There may be no room for two models at once. ${current.name} can be unloaded first.`,
		action: { label: `Unload ${current.name} and try again`, run: unloadFirst },
	};
}
