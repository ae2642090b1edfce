// Progressive enhancement: every page also works without JavaScript.
"use strict";

document.documentElement.classList.add("js");

const dialog = () => document.getElementById("dialog");

// The page contains the texts in its language, in templates/components/script_texts.html.
function translated(name, values = {}) {
  const text = document.getElementById("script-texts").dataset[name];
  return text.replace(/\{(\w+)\}/g, (placeholder, key) => values[key]);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeMenus();
});

// Close menus on a click or focus outside.
function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (menu !== except) menu.open = false;
  }
}
document.addEventListener("click", (event) => closeMenus(event.target.closest("details.menu")));
document.addEventListener("focusin", (event) => closeMenus(event.target.closest("details.menu")));

// A chosen option of a filter menu replaces what was typed beside it; “Apply” closes the menu.
document.addEventListener("change", (event) => {
  const options = event.target.closest(".menu-options");
  if (!options || event.target.type !== "radio") return;
  for (const input of options.parentElement.querySelectorAll(".menu-inputs input")) input.value = "";
}, true);
document.addEventListener("submit", (event) => {
  if (event.target.id === "filters") closeMenus();
});

// Pause polling while the page is hidden. Requests that load once are not paused.
const loadedOnce = new WeakSet();
function isPoll({ elt, triggeringEvent }) {
  const triggers = (elt.getAttribute("hx-trigger") || "").split(",").map((each) => each.trim());
  if (triggeringEvent || !triggers.some((each) => each.startsWith("every "))) return false;
  if (loadedOnce.has(elt) || !triggers.some((each) => /^load\b/.test(each))) return true;
  loadedOnce.add(elt);
  return false;
}
const polls = new WeakSet();
// Do not reload a list while rows are selected or it has the focus, nor a part in which text is marked.
function isInUse(target) {
  if (target.matches("form.results")) return target.contains(document.activeElement) || target.querySelector("input:checked");
  const marked = document.getSelection();
  return !marked.isCollapsed && target.contains(marked.anchorNode);
}
document.addEventListener("htmx:beforeRequest", (event) => {
  const { requestConfig, target } = event.detail;
  if (!isPoll(requestConfig)) return;
  polls.add(requestConfig);
  if (document.hidden || document.querySelector("dialog[open]") || isInUse(target)) event.preventDefault();
});

// Show the age of live parts, by the browser's clock; a part is stale after three missed polls.
const receivedAt = new WeakMap();
function age(seconds) {
  if (seconds < 5) return translated("justNow");
  if (seconds < 60) return translated("secondsAgo", { count: seconds });
  const [name, unit] = seconds < 3600 ? ["minutesAgo", 60] : ["hoursAgo", 3600];
  const values = { count: Math.floor(seconds / unit), rest: Math.floor(((seconds % unit) * 60) / unit) };
  return translated(values.rest ? `${name}AndRest` : name, values);
}
function updateAges() {
  for (const each of document.querySelectorAll(".updated > [data-updated]")) {
    if (!receivedAt.has(each)) receivedAt.set(each, Date.now());
    const part = each.closest("[hx-trigger*='every ']");
    const every = Number(each.dataset.updated || (part && /every (\d+)s/.exec(part.getAttribute("hx-trigger"))[1]));
    if (!every) continue;
    const seconds = Math.floor((Date.now() - receivedAt.get(each)) / 1000);
    const stale = seconds > 3 * every;
    each.parentElement.classList.toggle("is-stale", stale);
    each.parentElement.querySelector("use").setAttribute("href", stale ? "#s-tri" : "#s-dot");
    each.textContent = translated(stale ? "stale" : "updated", { age: age(seconds) });
  }
}
setInterval(updateAges, 1000);
document.addEventListener("DOMContentLoaded", updateAges);
document.addEventListener("htmx:afterSettle", updateAges);

// Keep open details and the focus when a panel reloads.
const savedState = new WeakMap();
const focusableElements = (part) => [...part.querySelectorAll("a[href], button, summary, input, select, textarea")];
function elementKey(each) {
  const names = ["href", "name", "value", "formaction"].map((name) => each.getAttribute(name));
  if (!names.some(Boolean)) names.push(each.textContent.trim());
  return [each.tagName, each.form && each.form.getAttribute("action"), ...names].join("|");
}
function focusPosition(part) {
  const all = focusableElements(part);
  const index = all.indexOf(document.activeElement);
  if (index < 0) return null;
  const key = elementKey(all[index]);
  const before = all.slice(0, index).filter((each) => elementKey(each) === key).length;
  return { key, before, index, tag: all[index].tagName };
}
function restoreFocus(part, { key, before, index, tag }) {
  if (part.contains(document.activeElement)) return;
  const all = focusableElements(part);
  const same = all.filter((each) => elementKey(each) === key)[before];
  const instead = all[index] && all[index].tagName === tag ? all[index] : null;
  if (same || instead) (same || instead).focus({ preventScroll: true });
}
document.addEventListener("htmx:beforeSwap", (event) => {
  const { requestConfig, target, xhr } = event.detail;
  if (polls.has(requestConfig) && isInUse(target)) event.detail.shouldSwap = false;
  if (requestConfig.elt !== target || requestConfig.triggeringEvent) return;
  const open = [...target.querySelectorAll("details")].map((each) => each.open);
  savedState.set(xhr, { open, focus: focusPosition(target) });
});
document.addEventListener("htmx:afterSwap", (event) => {
  const { open, focus } = savedState.get(event.detail.xhr) || { open: [] };
  const details = [...event.target.querySelectorAll("details")];
  if (details.length === open.length) details.forEach((each, index) => (each.open = open[index]));
  if (focus) restoreFocus(event.target, focus);
});

// Open the dialog when htmx has filled it, and restore the focus when it closes.
let opener = null;
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.target === dialog() && !dialog().open) opener = document.activeElement;
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target !== dialog()) return;
  if (!dialog().open) dialog().showModal();
  const invalid = dialog().querySelector("[aria-invalid=true]");
  const first = invalid || dialog().querySelector("input:not([type=hidden]), select, textarea, button[type=submit]");
  if (first) first.focus();
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close]") || event.target === dialog()) dialog().close();
});
document.addEventListener("DOMContentLoaded", () => {
  dialog().addEventListener("close", () => {
    dialog().replaceChildren();
    // A live part may have replaced the link while the dialog was open.
    const same = opener && [opener, ...document.querySelectorAll("a[href]")].find((each) => each.isConnected && each.href === opener.href);
    if (same) same.focus();
  });
  for (const input of document.querySelectorAll("[data-select-text]")) input.select();
});

// Select all rows of the page, and count the selected rows.
function countSelection(form) {
  const boxes = [...form.querySelectorAll(".select")];
  const chosen = boxes.filter((box) => box.checked).length;
  const text = form.querySelector("[data-selected-count]");
  const matching = form.querySelector("[name=all]:checked");
  if (text) text.textContent = matching ? matching.parentElement.textContent.trim() : translated("selected", { count: chosen });
  for (const all of form.querySelectorAll("[data-select-all]")) {
    all.checked = chosen === boxes.length && chosen > 0;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
  }
}
document.addEventListener("change", (event) => {
  const form = event.target.closest("form.results");
  if (!form) return;
  if (event.target.matches("[data-select-all]")) {
    for (const box of form.querySelectorAll(".select")) box.checked = event.target.checked;
  }
  countSelection(form);
});
document.addEventListener("reset", (event) => {
  if (event.target.matches("form.results")) setTimeout(() => countSelection(event.target));
});

// Typing a custom value selects its option.
document.addEventListener("input", (event) => {
  const option = event.target.dataset.selects && document.getElementById(event.target.dataset.selects);
  if (option) option.checked = true;
});

// Announce the number of results to screen readers.
function announce(text) {
  document.getElementById("announcer").textContent = text;
}
document.addEventListener("htmx:afterSettle", (event) => {
  const count = document.querySelector("#results [data-count]");
  const config = event.detail.requestConfig;
  if (event.target.id === "results" && !(config && isPoll(config))) {
    announce(count ? count.textContent : translated("noResults"));
  }
});

// Announce a new status of the object of a page to screen readers.
let status = null;
document.addEventListener("htmx:afterSettle", () => {
  const shown = document.querySelector("[data-status]");
  if (!shown) return;
  if (status && status !== shown.dataset.status) announce(translated("newStatus", { status: shown.dataset.status }));
  status = shown.dataset.status;
});
document.addEventListener("DOMContentLoaded", () => {
  const shown = document.querySelector("[data-status]");
  status = shown && shown.dataset.status;
});

// Copy the text of a button. Without HTTPS a browser offers only the old command.
async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const box = document.createElement("textarea");
  box.className = "visually-hidden";
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  if (!done) throw new Error("The browser refused to copy.");
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  try {
    await copy(button.dataset.copy);
    announce(translated("copied", { text: button.dataset.copyName || button.dataset.copy }));
    button.classList.add("is-copied");
    setTimeout(() => button.classList.remove("is-copied"), 2000);
  } catch {
    toast(translated("notCopied"));
  }
  button.focus();
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) window.print();
});

// Export with the current filters.
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-export]");
  if (!link) return;
  const query = new URLSearchParams(window.location.search);
  query.delete("cursor");
  query.set("format", link.dataset.export);
  link.href = `?${query}`;
});

// Dismiss toasts, and show htmx errors as toasts. Live parts show by themselves that they are stale.
function toast(text) {
  const shown = [...document.querySelectorAll("#toasts .toast > span")];
  if (shown.some((each) => each.textContent === text)) return;
  const box = document.createElement("div");
  box.className = "toast tone-bad";
  box.innerHTML = '<svg aria-hidden="true"><use href="#s-oct"/></svg><span></span>';
  box.querySelector("span").textContent = text;
  document.getElementById("toasts").append(box);
  setTimeout(() => box.remove(), 10000);
}
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-dismiss]")) event.target.closest(".toast").remove();
});
document.addEventListener("htmx:responseError", (event) => {
  const status = event.detail.xhr.status;
  if (status >= 500 && polls.has(event.detail.requestConfig)) return;
  const name = { 403: "accessDenied", 404: "notFound", 409: "conflict" }[status] || "serverError";
  toast(translated(name, { status }));
});
document.addEventListener("htmx:sendError", (event) => {
  if (!polls.has(event.detail.requestConfig)) toast(translated("unreachable"));
});

// Apply the theme immediately; the server stores it.
document.addEventListener("submit", (event) => {
  const form = event.target.closest(".theme-switch");
  if (!form) return;
  event.preventDefault();
  const theme = event.submitter.value;
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const button of form.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button === event.submitter));
  }
  const body = new FormData(form, event.submitter);
  fetch(form.action, { method: "POST", body, redirect: "manual" });
});
