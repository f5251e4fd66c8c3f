// The risk page: the slider moves a belief along the two curves; everything is computed here.
export function start(root, app) {
  const { find } = app, end = +root.dataset.end, now = +root.dataset.now;
  const height = +root.dataset.height, top = +root.dataset.top;
  const slider = find("#prior", root), field = find("#prior-number", root);
  const after = (p, rise) => p * Math.exp(rise) / (1 - p + p * Math.exp(rise));
  const up = (p) => `${Math.min(100, Math.ceil(100 * p * (1 - 1e-12)))} %`;
  const y = (p) => top + (height - top) * (1 - p);

  function set(mark, facts) {
    for (const [name, value] of Object.entries(facts)) find(mark, root).setAttribute(name, value);
  }

  function move(percent) {
    const p = percent / 100, high = after(p, end), mid = after(p, now), at = `${percent}%`, left = percent < 30;
    slider.value = field.value = percent;
    slider.ariaValueText = `${percent} % before, at most ${up(high)} after`;
    for (const [name, text] of [["prior", `${percent} %`], ["end", up(high)], ["now", up(mid)]]) find(`[data-r=${name}]`, root).textContent = text;
    for (const [mark, value] of [["#r-before", p], ["#r-now", mid], ["#r-end", high]]) set(mark, { cx: at, cy: y(value) });
    set("#r-line", { x1: at, x2: at, y2: y(high) });
    set("#r-text", { x: at, y: y(high), class: left ? "key" : "key end", dx: left ? 12 : -10, dy: left ? 14 : -8 });
    find("#r-text", root).textContent = `at most ${up(high)}`;
  }
  slider.addEventListener("input", () => move(+slider.value));
  slider.addEventListener("keydown", (event) => {
    const step = { PageUp: 10, PageDown: -10 }[event.key];
    if (step) { event.preventDefault(); move(Math.min(99, Math.max(1, +slider.value + step))); }
  });
  field.addEventListener("change", () => move(Math.min(99, Math.max(1, Math.round(+field.value) || 40))));
}
