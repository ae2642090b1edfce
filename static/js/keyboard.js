// Search suggestions, the command palette and keyboard shortcuts. Without JavaScript the search box opens the search
// page. templates/search/shortcuts.html lists the shortcuts.
"use strict";

// Suggestions and palette, a combobox each (static/js/combobox.js).
const palette = (() => {
  const RECENT = "lcm-recent";
  const MOST_RECENT = 8;
  const box = () => document.getElementById("palette");
  const matches = (label, text) => text.toLowerCase().split(/\s+/).every((word) => label.toLowerCase().includes(word));

  function optionOf({ label, more, keys, href, run }) {
    const option = document.createElement(href ? "a" : "div");
    Object.assign(option, { role: "option", tabIndex: -1, run });
    if (href) option.href = href;
    const text = document.createElement("span");
    text.className = "option-text";
    text.textContent = label;
    option.append(text);
    for (const [tag, values] of [["span", more ? [more] : []], ["kbd", keys || []]]) {
      for (const value of values) {
        const part = document.createElement(tag);
        if (tag === "span") part.className = "sub";
        part.textContent = value;
        option.append(part);
      }
    }
    return option;
  }

  function groupOf(name, entries, text) {
    const found = entries.filter((entry) => matches(`${entry.label} ${entry.more || ""}`, text));
    if (!found.length) return [];
    const group = document.createElement("div");
    group.className = "option-group";
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", translated(name));
    const title = document.createElement("p");
    title.className = "nav-title";
    title.setAttribute("aria-hidden", "true");
    title.textContent = translated(name);
    group.append(title, ...found.map(optionOf));
    return [group];
  }

  const labelOf = (link) => [...link.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data.trim()).join(" ").trim();

  // The actions of the page's object: those in its head, and those in panels that open a dialog.
  const ACTIONS = ".page-head .actions :is(a[href], button:not([disabled])), .panel-head .actions [hx-target='#dialog']";
  function actions() {
    return [...document.querySelectorAll(`#main :is(${ACTIONS})`)].filter(labelOf).map((element) => {
      const label = labelOf(element);
      return { label, run: () => perform(element.isConnected ? element : actionCalled(label)) };
    });
  }
  // A refresh of the page may have replaced the element a moment ago; htmx must know it before the click.
  function perform(element) {
    if (!element) return;
    window.htmx?.process(element);
    element.click();
  }
  const actionCalled = (label) => [...document.querySelectorAll(`#main :is(${ACTIONS})`)].find((each) => labelOf(each) === label);

  const sections = () => [...document.querySelectorAll("#main .section-nav a")].map((link) => ({ label: labelOf(link), run: () => link.click() }));
  const pages = () => [...document.querySelectorAll("#nav .nav a")].map((link) => ({ label: labelOf(link), href: link.href, keys: link.dataset.shortcut && ["g", link.dataset.shortcut] }));

  // Objects that were open last, the newest first. The sign-in page forgets them.
  function recent() {
    try {
      return JSON.parse(localStorage.getItem(RECENT)) || [];
    } catch {
      return [];
    }
  }
  function keepRecent() {
    const main = document.getElementById("main");
    const here = document.querySelector(".crumbs [aria-current]");
    try {
      if (document.querySelector("[data-forget]")) localStorage.removeItem(RECENT);
      if (!main || !main.dataset.object || !here) return;
      const shown = { href: location.pathname, label: here.textContent, more: main.dataset.object };
      const others = recent().filter((each) => each.href !== shown.href);
      localStorage.setItem(RECENT, JSON.stringify([shown, ...others].slice(0, MOST_RECENT + 1)));
    } catch {
      // The browser stores nothing for this page.
    }
  }
  const recentElsewhere = () => recent().filter((each) => each.href !== location.pathname).slice(0, MOST_RECENT);

  const groups = (text) => [
    ...groupOf("actions", actions(), text),
    ...groupOf("sections", sections(), text),
    ...(text ? [] : groupOf("recent", recentElsewhere(), text)),
    ...groupOf("pages", pages(), text),
    ...(text ? groupOf("recent", recentElsewhere(), text) : []),
  ];

  let inPalette = null;
  function open(text = "") {
    if (!inPalette || document.querySelector("dialog[open]")) return;
    box().showModal();
    inPalette.input.value = text;
    inPalette.update();
    inPalette.input.focus();
  }

  // The browser returns the focus; if nothing had it, it must not stay in the hidden input.
  function close() {
    box().close();
    inPalette.input.blur();
  }

  function take(option, event) {
    close();
    if (!option.run) return;
    event.preventDefault();
    option.run();
  }

  function start() {
    keepRecent();
    const search = document.querySelector("[data-search]");
    if (!search) return;
    const { url } = search.dataset;
    const suggestions = new Combobox(search, document.getElementById("suggestions"), { url, take: () => suggestions.close() });
    const input = document.getElementById("palette-q");
    inPalette = new Combobox(input, document.getElementById("palette-options"), { url, own: groups, stays: true, isShown: () => box().open, take });
    box().addEventListener("click", (event) => (event.target.closest("[data-close-palette]") || event.target === box()) && close());
    input.addEventListener("keydown", (event) => event.key === "Escape" && close());
    // On a phone the link to the search page opens the palette.
    document.querySelector(".search-link").addEventListener("click", (event) => {
      event.preventDefault();
      open();
    });
  }
  document.addEventListener("DOMContentLoaded", start);

  return { open, toggle: () => (box() && box().open ? close() : open()) };
})();

// Shortcuts. Shortcuts of one character do nothing while typing.
(() => {
  const OFF = "lcm-shortcuts-off";
  const SEQUENCE_MS = 1500;
  const FIELDS = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]";

  function isOff() {
    try {
      return localStorage.getItem(OFF) === "1";
    } catch {
      return false;
    }
  }

  function goToSearch() {
    const search = document.querySelector("[data-search]");
    if (!search) return;
    if (!search.offsetParent) return palette.open();
    search.focus();
    search.select();
  }

  function showShortcuts() {
    const link = document.querySelector("[data-shortcuts]");
    if (link) htmx.ajax("GET", link.href, { target: "#dialog", swap: "innerHTML" });
  }

  // The main link of each visible row; on a list page only rows of the list.
  function rowLinks() {
    const part = document.querySelector("#results") || document.getElementById("main");
    const rows = [...part.querySelectorAll("tbody > tr, .list > li")];
    return rows.map((row) => row.querySelector(".card-title a[href], a.name, a[href]")).filter((link) => link && link.offsetParent);
  }
  function moveBy(step) {
    const links = rowLinks();
    const here = links.findIndex((link) => link.closest("tr, li").contains(document.activeElement));
    const next = here < 0 ? 0 : Math.min(Math.max(here + step, 0), links.length - 1);
    if (links[next]) links[next].focus();
  }

  let afterG = null;
  function goTo(key) {
    clearTimeout(afterG);
    afterG = null;
    const link = document.querySelector(`#nav [data-shortcut="${CSS.escape(key)}"]`);
    if (link) link.click();
  }

  const KEYS = {
    "/": goToSearch,
    "?": showShortcuts,
    j: () => moveBy(1),
    k: () => moveBy(-1),
    g: () => (afterG = setTimeout(() => (afterG = null), SEQUENCE_MS)),
  };
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      palette.toggle();
      return;
    }
    const isTyping = event.target.closest && event.target.closest(FIELDS);
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]") || isOff()) return;
    if (afterG) goTo(event.key);
    else if (Object.hasOwn(KEYS, event.key)) KEYS[event.key]();
    else return;
    event.preventDefault();
  });

  // The switch in the list of shortcuts.
  function showSwitch() {
    for (const each of document.querySelectorAll("[data-shortcuts-switch]")) each.checked = !isOff();
  }
  document.addEventListener("change", (event) => {
    if (!event.target.matches("[data-shortcuts-switch]")) return;
    if (event.target.checked) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "1");
  });
  document.addEventListener("DOMContentLoaded", showSwitch);
  document.addEventListener("htmx:afterSwap", showSwitch);
})();
