// Comboboxes (ARIA 1.2): text fields with suggestions, the search box and the command palette. Without JavaScript a
// field has its datalist, and the search box opens the search page.
"use strict";

// The focus stays in the input. Arrow keys choose an option, Enter takes it.
class Combobox {
  static DELAY_MS = 150;

  // `url` returns the options for a text. With `offersAll` it is also asked without one. `own` returns options of this
  // page; if the list `stays` open, one of them is always active. `take` gets the chosen option, unless it is a link.
  constructor(input, list, { url, own = null, offersAll = false, stays = false, text, isShown, take }) {
    Object.assign(this, { input, list, url, own, offersAll, stays, take, active: -1, first: stays ? 0 : -1 });
    Object.assign(this, { request: null, timer: 0, isOpening: false });
    this.text = text || (() => input.value.trim());
    this.isShown = isShown || (() => document.activeElement === input);
    const attributes = { role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id, "aria-expanded": "false" };
    for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
    // A script that fills the input opens no list.
    input.addEventListener("input", (event) => event.isTrusted && this.update());
    input.addEventListener("keydown", (event) => this.onKey(event));
    if (!stays) input.addEventListener("blur", () => this.close());
    // The focus stays in the input.
    list.addEventListener("mousedown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => this.onClick(event));
  }

  get options() {
    return [...this.list.querySelectorAll("[role=option]")];
  }

  // Show the options of this page at once, and options of the server when typing pauses.
  update(delay = Combobox.DELAY_MS, step = 0) {
    const text = this.text();
    this.stop();
    if (this.own) this.show(this.own(text), this.first);
    else if (!text && !this.offersAll) this.close();
    else this.choose(-1);
    if (!text && !this.offersAll) return;
    // Enter does not submit the form while an arrow key opens the list.
    this.isOpening = Boolean(step);
    this.timer = setTimeout(() => this.fetch(text, step), delay);
  }

  async fetch(text, step) {
    const request = (this.request = new AbortController());
    try {
      const response = await fetch(`${this.url}?${new URLSearchParams({ q: text })}`, { signal: request.signal, redirect: "manual" });
      if (!response.ok) return;
      const found = document.createElement("div");
      found.innerHTML = await response.text();
      if (text !== this.text() || !this.isShown()) return;
      this.show([...(this.own ? this.own(text) : []), ...found.children], this.active < 0 ? this.first : this.active);
      if (step) this.move(step);
      const count = this.options.length;
      announce(count ? translated("suggestionsFound", { count }) : translated("noResults"));
    } catch (error) {
      // Without suggestions, Enter in the search box opens the search page.
      if (error.name !== "AbortError" && this.offersAll) toast(translated("unreachable"));
    } finally {
      if (this.request === request) this.isOpening = false;
    }
  }

  stop() {
    clearTimeout(this.timer);
    if (this.request) this.request.abort();
    this.request = null;
    this.isOpening = false;
  }

  show(parts, active) {
    this.list.replaceChildren(...parts);
    this.options.forEach((option, index) => (option.id = `${this.list.id}-${index}`));
    this.list.hidden = !this.options.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.choose(Math.min(active, this.options.length - 1));
  }

  close() {
    this.stop();
    this.show([], -1);
  }

  choose(index) {
    this.active = index;
    this.options.forEach((option, place) => option.setAttribute("aria-selected", String(place === index)));
    const option = this.options[index];
    if (option) {
      this.input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    } else this.input.removeAttribute("aria-activedescendant");
  }

  // Before the first option is the input itself, unless one option is always active.
  move(step) {
    const before = this.stays ? 0 : 1;
    const places = this.options.length + before;
    if (this.options.length) this.choose(((this.active + before + step + places) % places) - before);
  }

  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.isComposing) return;
    if (step && this.options.length) this.move(step);
    else if (step) this.update(0, step);
    else if (event.key === "Enter" && (this.active >= 0 || this.isOpening)) this.options[this.active]?.click();
    // A dialog that contains the input stays open.
    else if (event.key === "Escape" && !this.list.hidden && !this.stays) this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  onClick(event) {
    const option = event.target.closest("[role=option]");
    if (!option || event.ctrlKey || event.metaKey) return;
    this.take(option, event);
  }
}

// Text fields with suggestions become comboboxes.
function enhanceField(input) {
  const list = document.createElement("div");
  list.id = `${input.id}_list`;
  list.className = "combobox-list";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", translated("suggestions"));
  const box = document.createElement("div");
  box.className = "combobox";
  input.replaceWith(box);
  box.append(input, list);
  input.removeAttribute("list");
  let chosen = input.value;
  const combobox = new Combobox(input, list, {
    url: input.dataset.suggest,
    offersAll: true,
    // All names are offered until the text changes.
    text: () => (input.value === chosen ? "" : input.value),
    take: (option) => {
      chosen = input.value = option.textContent;
      combobox.close();
      input.dispatchEvent(new Event("change", { bubbles: true }));
    },
  });
  input.addEventListener("click", () => list.hidden && combobox.update(0));
}

function enhanceFields() {
  for (const input of document.querySelectorAll("input[data-suggest]:not([role=combobox])")) enhanceField(input);
}
document.addEventListener("DOMContentLoaded", enhanceFields);
document.addEventListener("htmx:afterSwap", enhanceFields);
