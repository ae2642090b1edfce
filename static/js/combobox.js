// Text fields with suggestions become comboboxes (ARIA 1.2). Without JavaScript their datalist works.
"use strict";

function enhanceCombobox(input) {
  const list = document.createElement("ul");
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
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id, autocomplete: "off",
  })) input.setAttribute(name, value);

  let active = null;
  let request = null;
  let timer = 0;
  let isOpening = false;
  let chosen = input.value;

  function activate(option) {
    if (active) active.removeAttribute("aria-selected");
    active = option;
    if (!option) return input.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }
  function close() {
    clearTimeout(timer);
    if (request) request.abort();
    isOpening = false;
    activate(null);
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  }
  function choose(option) {
    chosen = input.value = option.textContent;
    close();
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }
  function show(names) {
    list.replaceChildren(...names.map((name, index) => {
      const option = document.createElement("li");
      option.id = `${list.id}_${index}`;
      option.setAttribute("role", "option");
      option.textContent = name;
      return option;
    }));
    activate(null);
    list.hidden = !names.length;
    input.setAttribute("aria-expanded", String(names.length > 0));
    if (!names.length) announce(translated("noResults"));
  }
  // All names are offered until the text changes.
  async function open(direction) {
    if (request) request.abort();
    request = new AbortController();
    // Enter does not submit the form meanwhile.
    isOpening = Boolean(direction);
    const text = input.value === chosen ? "" : input.value;
    try {
      const response = await fetch(`${input.dataset.suggest}?q=${encodeURIComponent(text)}`, { signal: request.signal });
      if (!response.ok || document.activeElement !== input) return close();
      const part = document.createElement("template");
      part.innerHTML = await response.text();
      show([...part.content.querySelectorAll("option")].map((option) => option.value));
      if (direction) move(direction);
      isOpening = false;
    } catch (error) {
      if (error.name !== "AbortError") isOpening = false;
      if (error.name !== "AbortError") toast(translated("unreachable"));
    }
  }
  function move(direction) {
    const options = [...list.children];
    if (!options.length) return;
    const next = active ? options.indexOf(active) + direction : direction > 0 ? 0 : options.length - 1;
    activate(options[next] || null);
  }

  input.addEventListener("input", (event) => {
    if (!event.isTrusted) return;
    clearTimeout(timer);
    timer = setTimeout(open, 150);
  });
  input.addEventListener("click", () => list.hidden && open());
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const direction = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (direction) {
      event.preventDefault();
      if (list.hidden) open(direction);
      else move(direction);
    } else if (event.key === "Enter" && (active || isOpening)) {
      event.preventDefault();
      if (active) choose(active);
    } else if (event.key === "Escape" && !list.hidden) {
      // The dialog that contains the field stays open.
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  });
  // Before the field loses the focus.
  list.addEventListener("mousedown", (event) => {
    event.preventDefault();
    const option = event.target.closest("[role=option]");
    if (option) choose(option);
  });
}

function enhanceComboboxes() {
  for (const input of document.querySelectorAll("input[data-suggest]:not([role=combobox])")) enhanceCombobox(input);
}
document.addEventListener("DOMContentLoaded", enhanceComboboxes);
document.addEventListener("htmx:afterSwap", enhanceComboboxes);
