// Zoom and move a topology. Without JavaScript it is a static picture whose nodes are links.
"use strict";

(() => {
  const MOST = 6;
  const STEP = 1.5;
  // The visible part survives a refresh of the page: zoom, and the middle as shares of the picture.
  const start = { zoom: 1, x: 0.5, y: 0.5 };
  let view = { ...start };

  const pictures = () => document.querySelectorAll("[data-topology] > svg");
  const sizeOf = (svg) => [svg.dataset.width, svg.dataset.height].map(Number);

  function show(svg) {
    if (!svg.dataset.width) {
      const [, , width, height] = svg.getAttribute("viewBox").split(" ");
      Object.assign(svg.dataset, { width, height });
      svg.tabIndex = 0;
    }
    const [width, height] = sizeOf(svg);
    const half = 0.5 / view.zoom;
    view.x = Math.min(Math.max(view.x, half), 1 - half);
    view.y = Math.min(Math.max(view.y, half), 1 - half);
    const box = [(view.x - half) * width, (view.y - half) * height, width / view.zoom, height / view.zoom];
    svg.setAttribute("viewBox", box.map((each) => each.toFixed(1)).join(" "));
    svg.classList.toggle("is-zoomed", view.zoom > 1);
  }

  function change(svg, { zoom = 1, x = 0, y = 0 }) {
    view.zoom = Math.min(Math.max(view.zoom * zoom, 1), MOST);
    view.x += x / view.zoom;
    view.y += y / view.zoom;
    show(svg);
  }

  function reset(svg) {
    view = { ...start };
    show(svg);
  }

  const BUTTONS = { in: (svg) => change(svg, { zoom: STEP }), out: (svg) => change(svg, { zoom: 1 / STEP }), reset };
  const KEYS = {
    "+": BUTTONS.in,
    "-": BUTTONS.out,
    0: reset,
    ArrowLeft: (svg) => change(svg, { x: -0.2 }),
    ArrowRight: (svg) => change(svg, { x: 0.2 }),
    ArrowUp: (svg) => change(svg, { y: -0.2 }),
    ArrowDown: (svg) => change(svg, { y: 0.2 }),
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-zoom]");
    if (button) BUTTONS[button.dataset.zoom](button.closest("[data-topology]").querySelector("svg"));
  });
  document.addEventListener("keydown", (event) => {
    const svg = event.target.closest("[data-topology] > svg");
    if (!svg || !KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    KEYS[event.key](svg);
  });
  // Ctrl and the wheel, or a pinch on a touch pad: the wheel alone scrolls the page.
  document.addEventListener(
    "wheel",
    (event) => {
      const svg = event.target.closest("[data-topology] > svg");
      if (!svg || !event.ctrlKey) return;
      event.preventDefault();
      change(svg, { zoom: event.deltaY < 0 ? 1.2 : 1 / 1.2 });
    },
    { passive: false },
  );

  // Drag a zoomed picture; a drag that ends on a node does not follow its link.
  let drag = null;
  let moved = false;
  document.addEventListener("pointerdown", (event) => {
    const svg = event.target.closest("[data-topology] > svg.is-zoomed");
    moved = false;
    drag = svg && { svg, x: event.clientX, y: event.clientY };
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const [byX, byY] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!moved && Math.hypot(byX, byY) < 4) return;
    moved = true;
    const box = drag.svg.getBoundingClientRect();
    change(drag.svg, { x: -byX / box.width, y: -byY / box.height });
    Object.assign(drag, { x: event.clientX, y: event.clientY });
  });
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => (drag = null));
  document.addEventListener("dragstart", (event) => {
    if (event.target.closest("[data-topology]")) event.preventDefault();
  });
  document.addEventListener(
    "click",
    (event) => {
      if (moved && event.target.closest("[data-topology] > svg")) event.preventDefault();
      moved = false;
    },
    true,
  );

  const showAll = () => pictures().forEach(show);
  showAll();
  document.addEventListener("htmx:afterSettle", showAll);
})();
