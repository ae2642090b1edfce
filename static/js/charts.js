// Charts: a crosshair with values, series to isolate, and zoom by dragging. The server draws the charts.
"use strict";

(() => {
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const text = (name, values) => translated(name, values);

  // Return the readings of a chart by position in percent: each title has a heading and a value.
  function readingsOf(svg) {
    const width = svg.viewBox.baseVal && svg.viewBox.baseVal.width;
    const found = new Map();
    for (const title of svg.querySelectorAll("g title, a title, circle title, rect title")) {
      const mark = title.parentElement;
      const series = mark.closest("[data-series]");
      const place = (name) => {
        const value = mark.getAttribute(name);
        return parseFloat(value) * (value.endsWith("%") ? 1 : 100 / width);
      };
      const x = mark.dataset.x ? (100 * Number(mark.dataset.x)) / width
        : mark.hasAttribute("cx") ? place("cx") : place("x") + place("width") / 2;
      const [heading, ...values] = title.textContent.split("\n");
      const key = x.toFixed(2);
      if (!found.has(key)) found.set(key, { x, heading, values: [] });
      const kind = series && [...series.classList].find((name) => name.startsWith("kind-"));
      found.get(key).values.push({ text: values.join(" "), series: series ? series.dataset.series : "", kind });
      // The browser would show it over the crosshair.
      title.remove();
    }
    return [...found.values()].sort((one, other) => one.x - other.x);
  }

  class Chart {
    constructor(area) {
      this.area = area;
      this.svg = area.querySelector("svg");
      this.readings = readingsOf(this.svg);
      this.index = this.anchor = null;
      this.only = "";
      this.panel = area.closest(".plot") || area;
      this.legend = this.panel.parentElement.querySelector(":scope > .legend");
      if (!this.readings.length) return;
      this.addCrosshair();
      this.addPointer();
      if (this.legend) this.addLegend();
    }

    addCrosshair() {
      const box = document.createElement("div");
      box.className = "crosshair";
      box.innerHTML = '<i class="crosshair-line" hidden></i><i class="crosshair-part" hidden></i><div class="crosshair-values" hidden></div>';
      [this.line, this.part, this.values] = box.children;
      this.slider = box;
      const attributes = { role: "slider", tabindex: 0, "aria-label": text("chartValues", { chart: this.area.dataset.chart }), "aria-valuemin": 1, "aria-valuemax": this.readings.length, "aria-valuenow": this.readings.length, "aria-valuetext": this.textOf(this.readings.length - 1) };
      for (const [name, value] of Object.entries(attributes)) box.setAttribute(name, value);
      box.addEventListener("keydown", (event) => this.onKey(event));
      box.addEventListener("focus", () => box.matches(":focus-visible") && this.show(this.index ?? this.readings.length - 1));
      box.addEventListener("blur", () => this.hide());
      this.area.append(box);
    }

    shownValues(index) {
      return this.readings[index].values.filter((value) => !this.only || value.series === this.only);
    }
    textOf(index) {
      return [this.readings[index].heading, ...this.shownValues(index).map((value) => value.text)].join(", ");
    }

    show(index) {
      this.index = index;
      const { x, heading } = this.readings[index];
      this.line.style.setProperty("--x", `${x}%`);
      this.values.style.setProperty("--x", `${x}%`);
      this.values.classList.toggle("is-left", x > 50);
      const title = document.createElement("b");
      title.textContent = heading;
      const rows = this.shownValues(index).map((value) => {
        const row = document.createElement("span");
        if (value.kind) row.insertAdjacentHTML("beforeend", `<i class="swatch ${value.kind}"></i>`);
        row.append(value.text);
        return row;
      });
      this.values.replaceChildren(title, ...rows);
      this.line.hidden = this.values.hidden = false;
      this.slider.setAttribute("aria-valuenow", index + 1);
      this.slider.setAttribute("aria-valuetext", this.textOf(index));
    }
    hide() {
      this.line.hidden = this.values.hidden = true;
      this.select(null);
    }

    // Mark the part between two positions in percent.
    select(from, to) {
      this.part.hidden = from === null;
      if (from === null) {
        this.anchor = null;
        return;
      }
      this.part.style.setProperty("--x", `${Math.min(from, to)}%`);
      this.part.style.setProperty("--width", `${Math.abs(to - from)}%`);
    }

    onKey(event) {
      const last = this.readings.length - 1;
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -last, End: last };
      if (event.key in steps) {
        const before = this.index ?? last;
        const index = clamp(before + steps[event.key], 0, last);
        if (event.shiftKey && this.anchor === null) this.anchor = before;
        if (!event.shiftKey) this.select(null);
        this.show(index);
        if (event.shiftKey) this.select(this.readings[this.anchor].x, this.readings[index].x);
      } else if (event.key === "Enter" && this.anchor !== null) {
        this.zoom(this.readings[this.anchor].x, this.readings[this.index].x);
      } else if (event.key === "Escape") this.hide();
      else return;
      event.preventDefault();
      event.stopPropagation();
    }

    addPointer() {
      const area = this.area;
      const place = (event) => {
        const box = this.svg.getBoundingClientRect();
        return clamp((100 * (event.clientX - box.left)) / box.width, 0, 100);
      };
      let start = null;
      area.addEventListener("pointerdown", (event) => {
        // A mark may be a link.
        if (event.button || event.pointerType === "touch" || !area.dataset.zoomStart || event.target.closest("a")) return;
        start = place(event);
        area.setPointerCapture(event.pointerId);
        event.preventDefault();
      });
      area.addEventListener("pointermove", (event) => {
        const x = place(event);
        const gaps = this.readings.map((reading) => Math.abs(reading.x - x));
        this.show(gaps.indexOf(Math.min(...gaps)));
        if (start !== null) this.select(start, x);
        this.isDragged = start !== null;
      });
      area.addEventListener("pointerup", (event) => {
        const from = start;
        start = null;
        this.isDragged = false;
        this.select(null);
        // A click is no drag.
        if (from !== null && Math.abs(place(event) - from) > 1) this.zoom(from, place(event));
      });
      area.addEventListener("pointercancel", () => {
        start = null;
        this.isDragged = false;
      });
      area.addEventListener("pointerleave", () => document.activeElement !== this.slider && start === null && this.hide());
    }

    // Open the page with this part of the range in its address.
    zoom(from, to) {
      const { zoomStart, zoomEnd, zoomAddress, zoomDaily } = this.area.dataset;
      if (!zoomStart) return;
      const [low, high] = [Math.min(from, to), Math.max(from, to)].map((x) => Number(zoomStart) + ((zoomEnd - zoomStart) * x) / 100);
      const daily = zoomDaily !== undefined;
      const written = (seconds) => new Date(Math.round(seconds) * 1000).toISOString().slice(0, daily ? 10 : 19) + (daily ? "" : "Z");
      const url = new URL(zoomAddress || location.href, location.href);
      url.searchParams.set("range", "custom");
      url.searchParams.set("from", written(low));
      url.searchParams.set("to", written(daily ? Math.max(high - 1, low) : Math.max(high, low + 1)));
      url.searchParams.delete("zone");
      location.assign(url);
    }

    addLegend() {
      for (const item of this.legend.querySelectorAll(":scope > [data-series]")) {
        const button = document.createElement("button");
        button.type = "button";
        button.setAttribute("aria-pressed", "false");
        button.title = text("isolate");
        button.append(...item.childNodes);
        button.addEventListener("click", () => this.isolate(this.only === item.dataset.series ? "" : item.dataset.series));
        item.append(button);
      }
    }

    // Show one series, columns from zero; an empty name shows all.
    isolate(only) {
      this.only = only;
      for (const group of this.svg.querySelectorAll("[data-series]")) {
        group.classList.toggle("is-off", Boolean(only) && group.dataset.series !== only);
        for (const bar of group.dataset.bottom ? group.children : []) {
          bar.dataset.y = bar.dataset.y || bar.getAttribute("y");
          bar.setAttribute("y", only ? group.dataset.bottom - bar.getAttribute("height") : bar.dataset.y);
        }
      }
      for (const item of this.legend.querySelectorAll(":scope > [data-series]")) {
        const isShown = item.dataset.series === only;
        item.firstElementChild.setAttribute("aria-pressed", String(isShown));
        item.classList.toggle("is-off", Boolean(only) && !isShown);
      }
      if (!this.values.hidden) this.show(this.index);
    }

    // Values that survive a reload of the panel.
    get state() {
      const heading = this.index === null || this.values.hidden ? null : this.readings[this.index].heading;
      return { only: this.only, heading, hasFocus: document.activeElement === this.slider };
    }
    restore({ only, heading, hasFocus }) {
      if (!this.readings.length) return;
      if (only && this.legend && this.legend.querySelector(`[data-series="${only}"]`)) this.isolate(only);
      const index = this.readings.findIndex((reading) => reading.heading === heading);
      if (hasFocus) this.slider.focus({ preventScroll: true });
      if (heading !== null) this.show(index < 0 ? this.readings.length - 1 : index);
    }
  }

  const charts = new WeakMap();
  const areasIn = (part) => [...part.querySelectorAll("[data-chart]")];
  function start() {
    for (const area of areasIn(document)) if (!charts.has(area)) charts.set(area, new Chart(area));
  }
  document.addEventListener("DOMContentLoaded", start);
  document.addEventListener("htmx:oobAfterSwap", start);

  const saved = new WeakMap();
  document.addEventListener("htmx:beforeSwap", (event) => {
    const shown = areasIn(event.detail.target).map((area) => charts.get(area)).filter(Boolean);
    if (shown.some((chart) => chart.isDragged)) event.detail.shouldSwap = false;
    saved.set(event.detail.xhr, shown.map((chart) => chart.state));
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    start();
    const states = saved.get(event.detail.xhr) || [];
    const areas = areasIn(event.target);
    if (areas.length === states.length) areas.forEach((area, index) => charts.get(area).restore(states[index]));
  });
})();
