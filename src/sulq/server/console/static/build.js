// The question builder: measure, column, filters, groups. It writes SQL into the editor, where the
// price comes from; SQL that was typed is shown here where it fits.
const PLAIN_NAME = /^[a-z_][a-z0-9_]*$/;
const name = (text) => PLAIN_NAME.test(text) ? text : `"${text.replaceAll('"', '""')}"`;
const bare = (text) => text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text;
const NAME = '("(?:[^"]|"")+"|[A-Za-z_]\\w*)', NUMBER = "(-?\\d+(?:\\.\\d+)?)", TEXT = "('(?:[^']|'')*'|-?\\d+(?:\\.\\d+)?)";
const DAY = "(?:DATE )?'(\\d{4}-\\d\\d-\\d\\d)'", flat = (text) => text.replace(/\s+/g, " ").trim();
const whole = (pattern) => new RegExp(`^${pattern}$`, "i");
const MEASURES = { AVG: "average", SUM: "total", MEDIAN: "median", STDDEV: "spread" };

export function builder(root, app, write) {
  const form = root.querySelector("#build"), find = (what) => form.querySelector(what);
  const table = root.dataset.asked, counted = form.dataset.count, filters = find("#filters");
  const kinds = new Map([...find("#filter-column").options].filter((one) => one.value).map((one) => [one.value, one.dataset.kind]));
  let own = null; // the text that came from here

  // --- from the form to SQL ---
  function sql() {
    const measure = find("#measure").value, column = find("#of").value, groups = [], keys = [];
    for (const at of ["1", "2"]) {
      const by = find(`#by${at}`).value, width = Number(find(`#width${at}`).value);
      if (!by) continue;
      const banded = kinds.get(by) === "number";
      keys.push(banded ? `FLOOR(${name(by)} / ${width}) * ${width} AS ${name(`${by}_from`)}` : name(by));
      groups.push(banded ? String(keys.length) : name(by));
    }
    const figure = measure === "COUNT" ? `${counted} AS n` : `${measure}(${name(column)}) AS ${MEASURES[measure]}`;
    const where = [...filters.children].flatMap(condition);
    return [`SELECT ${[...keys, figure].join(", ")}`, `FROM ${name(table)}`,
      ...(where.length ? [`WHERE ${where.join("\n  AND ")}`] : []), ...(groups.length ? [`GROUP BY ${groups.join(", ")}`] : [])].join("\n");
  }

  function condition(field) {
    const { filter, kind } = field.dataset, of = name(filter);
    if (kind === "flag") return find(`[name="${CSS.escape(field.id)}"]:checked`)?.value === "no" ? [`NOT ${of}`] : [of];
    if (kind === "category") {
      const ticked = [...field.querySelectorAll("[type=checkbox]:checked")].map((box) => box.value);
      return !ticked.length ? [] : ticked.length === 1 ? [`${of} = ${ticked[0]}`] : [`${of} IN (${ticked.join(", ")})`];
    }
    const [low, high] = [...field.querySelectorAll("[data-end]")].map((end) => end.value);
    const said = (value) => kind === "date" ? `DATE '${value}'` : value;
    return [...(low === "" ? [] : [`${of} >= ${said(low)}`]), ...(high === "" ? [] : [`${of} <= ${said(high)}`])];
  }

  function offer() {
    const measure = find("#measure").value, of = find("#of");
    find("#of-box").hidden = measure === "COUNT";
    for (const option of of.options) option.hidden = option.disabled = !option.dataset.fits.split(" ").includes(measure);
    if (of.selectedOptions[0]?.disabled) of.value = [...of.options].find((option) => !option.disabled)?.value ?? "";
    for (const at of ["1", "2"]) {
      const by = find(`#by${at}`), banded = kinds.get(by.value) === "number", width = find(`#width${at}`);
      find(`#width-box${at}`).hidden = !banded;
      if (banded && width.dataset.of !== by.value) { width.value = by.selectedOptions[0].dataset.width; width.dataset.of = by.value; }
    }
    find("#by2-box").hidden = !find("#by1").value;
    if (!find("#by1").value) find("#by2").value = "";
    for (const option of find("#by2").options) option.disabled = Boolean(option.value) && option.value === find("#by1").value;
    if (find("#by2").selectedOptions[0]?.disabled) find("#by2").value = "";
  }

  function changed() {
    offer();
    find("#beyond").hidden = true;
    own = sql();
    write(own);
  }

  async function add(column, ready) {
    const reply = await app.send(`/console/${encodeURIComponent(table)}/filter?column=${encodeURIComponent(column)}`);
    if (!reply.ok || !root.isConnected) return null;
    const field = app.parsed(await reply.text()).firstElementChild;
    filters.querySelector(`[data-filter="${CSS.escape(column)}"]`)?.remove();
    filters.append(field);
    ready?.(field);
    return field;
  }

  // --- from SQL to the form, where it fits ---
  const CONDITIONS = [
    [`${NAME} BETWEEN ${NUMBER} AND ${NUMBER}`, "number", (low, high) => ({ low, high })],
    [`${NAME} (>=|<=) ${NUMBER}`, "number", (sign, value) => (sign === ">=" ? { low: value } : { high: value })],
    [`${NAME} (>=|<=) ${DAY}`, "date", (sign, value) => (sign === ">=" ? { low: value } : { high: value })],
    [`${NAME} = ${TEXT}`, "category", (value) => ({ values: [value] })],
    [`${NAME} IN \\((${TEXT}(?:, ?${TEXT})*)\\)`, "category", (list) => ({ values: list.match(new RegExp(TEXT, "g")) })],
    [`NOT ${NAME}`, "flag", () => ({ yes: false })],
    [NAME, "flag", () => ({ yes: true })],
  ];

  function read(text) {
    const clause = whole(`SELECT (.+?) FROM ${NAME}(?: WHERE (.+?))?(?: GROUP BY (.+?))?;?`).exec(flat(text));
    if (!clause || bare(clause[2]) !== table) return null;
    const items = clause[1].split(/, ?(?![^()]*\))/), figure = items.pop(), groups = [], where = new Map();
    const called = whole(`(AVG|SUM|MEDIAN|STDDEV)\\(${NAME}\\)(?: AS ${NAME})?`).exec(figure);
    const count = figure.replace(/ AS \S+$/i, "").toUpperCase() === counted.toUpperCase();
    if (!called && !count) return null;
    for (const item of items) {
      const band = whole(`FLOOR\\(${NAME} / ${NUMBER}\\) \\* ${NUMBER}(?: AS ${NAME})?`).exec(item), plain = whole(NAME).exec(item);
      if (band && band[2] === band[3]) groups.push({ column: bare(band[1]), width: band[2] });
      else if (plain) groups.push({ column: bare(plain[1]) });
      else return null;
    }
    const by = clause[4] ? clause[4].split(/, ?/) : [];
    if (groups.length > 2 || by.length !== groups.length) return null;
    if (by.some((key, at) => key !== String(at + 1) && (groups[at].width || bare(key) !== groups[at].column))) return null;
    if (groups.some((group) => !kinds.has(group.column) || (kinds.get(group.column) === "number") !== Boolean(group.width))) return null;
    const parts = clause[3] ? clause[3].replace(/(BETWEEN \S+) AND /gi, "$1 ~AND~ ").split(/ AND /i).map((part) => part.replace(" ~AND~ ", " AND ")) : [];
    for (const part of parts) {
      const fit = CONDITIONS.map(([pattern, kind, made]) => [whole(pattern).exec(part), kind, made])
        .find(([hit, kind]) => hit && kinds.get(bare(hit[1])) === kind);
      if (!fit) return null;
      const column = bare(fit[0][1]), before = where.get(column), now = fit[2](...fit[0].slice(2));
      if (before && Object.keys(now).some((key) => key in before)) return null;
      where.set(column, { ...before, ...now });
    }
    const column = called ? bare(called[2]) : "", measure = called ? called[1].toUpperCase() : "COUNT";
    const fits = count || [...find("#of").options].some((one) => one.value === column && one.dataset.fits.split(" ").includes(measure));
    return fits ? { measure, column, groups, where } : null;
  }

  async function show(text) {
    if (text === own || form.hidden) return;
    const found = read(text);
    find("#beyond").hidden = Boolean(found) || !text.trim();
    own = found && text;
    if (!found) return;
    find("#measure").value = found.measure;
    if (found.column) find("#of").value = found.column;
    for (const at of [1, 2]) {
      const group = found.groups[at - 1];
      find(`#by${at}`).value = group?.column ?? "";
      if (group?.width) { find(`#width${at}`).value = group.width; find(`#width${at}`).dataset.of = group.column; }
    }
    offer();
    filters.replaceChildren();
    for (const [column, wanted] of found.where) {
      await add(column, (field) => {
        if (wanted.values) for (const box of field.querySelectorAll("[type=checkbox]")) box.checked = wanted.values.includes(box.value);
        if ("yes" in wanted) field.querySelector(`[value=${wanted.yes ? "yes" : "no"}]`).checked = true;
        const [low, high] = field.querySelectorAll("[data-end]");
        if (low) { low.value = wanted.low ?? ""; high.value = wanted.high ?? ""; slide(field); }
      });
    }
  }

  // A slider moves its number, and the other way round.
  function slide(field) {
    for (const end of field.querySelectorAll("[data-end]")) {
      const track = field.querySelector(`[data-track=${end.dataset.end}]`);
      if (track) track.value = end.value === "" ? track.dataset.none : end.value;
    }
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    const { target } = event, field = target.closest("fieldset[data-filter]");
    if (target.type === "search") {
      const wanted = target.value.trim().toLowerCase();
      for (const label of field.querySelectorAll("label.check")) label.hidden = !label.textContent.toLowerCase().includes(wanted);
      return;
    }
    if (target.id === "filter-column") return;
    if (target.dataset.track) field.querySelector(`[data-end=${target.dataset.track}]`).value = target.value === target.dataset.none ? "" : target.value;
    else if (target.dataset.end) slide(field);
    changed();
  });
  find("#filter-column").addEventListener("change", async (event) => {
    const column = event.target.value;
    event.target.value = "";
    const field = column && await add(column);
    if (!field) return;
    field.querySelector("input")?.focus();
    app.say(`Filter on ${column} added.`);
    changed();
  });
  form.addEventListener("click", (event) => {
    if (!event.target.closest("[data-drop]")) return;
    event.target.closest("fieldset").remove();
    find("#filter-column").focus();
    changed();
  });
  offer();
  return { show, start: changed };
}
