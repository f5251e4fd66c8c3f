// The risk page: the slider moves a belief along the two curves; everything is computed here.
export function start(root, app) {
  const { find } = app, end = +root.dataset.end, now = +root.dataset.now;
  const height = +root.dataset.height, top = +root.dataset.top;
  const slider = find("#prior", root), field = find("#prior-number", root);
  const after = (p, rise) => p * Math.exp(rise) / (1 - p + p * Math.exp(rise));
  const up = (p) => `${Math.min(100, Math.ceil(100 * p * (1 - 1e-12)))} %`;
  const y = (p) => top + (height - top) * (1 - p);

  function move(percent) {
    const p = percent / 100, high = after(p, end), mid = after(p, now);
    slider.value = field.value = percent;
    slider.setAttribute("aria-valuetext", `${percent} % before, at most ${up(high)} after`);
    for (const [name, text] of [["prior", `${percent} %`], ["end", up(high)], ["now", up(mid)]]) find(`[data-r=${name}]`, root).textContent = text;
    for (const [id, value] of [["r-before", p], ["r-now", mid], ["r-end", high]]) {
      const dot = find(`#${id}`, root);
      dot.setAttribute("cx", `${percent}%`);
      dot.setAttribute("cy", y(value));
    }
    const line = find("#r-line", root), text = find("#r-text", root), left = percent < 30;
    for (const [name, value] of [["x1", `${percent}%`], ["x2", `${percent}%`], ["y2", y(high)]]) line.setAttribute(name, value);
    text.setAttribute("x", `${percent}%`);
    text.setAttribute("y", y(high));
    text.setAttribute("class", left ? "key" : "key end");
    text.setAttribute("dx", left ? 12 : -10);
    text.setAttribute("dy", left ? 14 : -8);
    text.textContent = `at most ${up(high)}`;
  }
  slider.addEventListener("input", () => move(+slider.value));
  slider.addEventListener("keydown", (event) => {
    const step = { PageUp: 10, PageDown: -10 }[event.key];
    if (step) { event.preventDefault(); move(Math.min(99, Math.max(1, +slider.value + step))); }
  });
  field.addEventListener("change", () => move(Math.min(99, Math.max(1, Math.round(+field.value) || 40))));

  const table = root.dataset.table, look = `/console/${encodeURIComponent(table)}/attacks`;
  return app.attacks({ path: "/console/attack", body: { table } }, look, app.load);  // done: the page with its points
}
