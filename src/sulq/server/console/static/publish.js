// The publish wizard: every change is saved as a draft; the policy beside it is what gets published.
export function start(root, app) {
  const { find, sent } = app, { draft: id, step, table } = root.dataset, base = `/v1/drafts/${id}`;
  const form = find("#form", root);
  const draft = JSON.parse(find("#draft-raw", root).textContent || "{}");
  let queue = Promise.resolve(), timer = 0, gone = false;
  const all = (what) => root.querySelectorAll(what);
  const to = (name, number = id) => `/t/${encodeURIComponent(table)}/publish?draft=${number}&step=${name}`;

  const save = () => (queue = queue.then(() => sent(base, "PUT", draft)));

  async function beside() {
    const reply = await app.send(`/console/drafts/${id}/side?step=${step}`);
    if (!reply.ok || gone) return;
    find("#side", root).innerHTML = await reply.text();
    for (const state of all("#states i")) {
      const row = find(`tr[data-at="${state.dataset.at}"]`, root), chip = row && find("[data-state]", row);
      if (!chip) continue;
      chip.textContent = state.dataset.word;
      chip.className = `chip ${state.dataset.kind}`;
      const help = find(".help", row), wrong = state.dataset.word === "fix";
      help.textContent = state.textContent;
      help.classList.toggle("bad", wrong);
      for (const field of row.querySelectorAll("input:not([type])")) field.setAttribute("aria-invalid", String(wrong));
    }
    if (step === "columns") find("#next", root).setAttribute("aria-disabled", String(!find("#states", root).dataset.ready));
  }

  // Choices redraw the step, with the focus where it was; typing redraws only what stands beside it.
  async function redraw() {
    const focus = document.activeElement?.id;
    if (!await save() || gone) return;
    await app.load();
    if (focus) document.getElementById(focus)?.focus();
  }

  function take(field) {
    const row = field.closest("tr[data-at]"), column = row && draft.columns[+row.dataset.at], name = field.dataset.f || field.name;
    if (column) {
      const value = name === "public" ? field.value === "yes" : name === "confirmed" ? field.checked : field.value;
      column[name] = value;
      if (name === "public") column.confirmed = false;
      return name === "kind" || name === "public";
    }
    if (name === "cell") [draft.epsilon, draft.queries] = [field.value.split("|")[0], +field.value.split("|")[1]];
    else if (name === "unit") draft.unit = field.value === "row" ? "row" : (draft.columns.find((one) => /id$|key$/i.test(one.name)) || draft.columns[0]).name;
    else if (name === "unit_column") draft.unit = field.value;
    else if (["max_rows", "queries", "smallest"].includes(name)) draft[name] = Math.max(1, Math.round(+field.value) || 1);
    else draft[name] = field.value;
    return field.type === "radio" || ["smallest", "epsilon", "queries", "delta"].includes(name);
  }

  form?.addEventListener("input", (event) => {
    if (event.target.type === "radio" || event.target.tagName === "SELECT" || event.target.type === "checkbox") return;
    take(event.target);
    clearTimeout(timer);
    timer = setTimeout(async () => { if (await save() && step === "columns") beside(); }, 250);
  });
  form?.addEventListener("change", async (event) => {
    clearTimeout(timer);
    if (take(event.target)) return redraw();
    if (await save()) beside();
  });
  form?.addEventListener("submit", (event) => { event.preventDefault(); find("#next", root).click(); });
  root.addEventListener("click", (event) => {
    const next = event.target.closest("#next");
    if (next?.getAttribute("aria-disabled") === "true") {
      event.preventDefault();
      const first = find(".chip.bad[data-state], .chip.warn[data-state]", root)?.closest("tr");
      first?.querySelector("input, select")?.focus();
      app.say("Some columns are not ready yet.", true);
    }
    const drop = event.target.closest("[data-remove]");
    if (drop) sent(`/v1/drafts/${drop.dataset.remove}`, "DELETE").then((done) => done && app.load());
  });

  find("#begin", root)?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const made = await sent("/v1/drafts", "POST", { source: event.target.source.value });
    if (made) app.go(to("source", made.id));
  });

  // --- rehearse ---
  find("#rehearse", root)?.addEventListener("click", async (event) => {
    event.target.disabled = true;
    const done = await sent(`${base}/rehearse`, "POST");
    event.target.disabled = false;
    if (!done) return;
    const body = find("#rehearsal tbody", root);
    body.replaceChildren(...done.questions.map((line) => {
      const row = document.createElement("tr");
      for (const [at, name] of ["title", "price", "bar", "said"].entries()) {
        const cell = app.made(at ? "td" : "th", line[name], at ? "num" : "");
        if (at) cell.dataset.label = ["", "Price", "Error, 95 %", "Made-up answer"][at]; else cell.scope = "row";
        row.append(cell);
      }
      return row;
    }));
    find("#rehearsal", root).hidden = false;
    find("#stripe").hidden = false;
    app.say(`${done.questions.length} questions answered on made-up rows.`);
  });
  const attacked = app.attacks({ path: `/console/drafts/${id}/attack` }, `/console/drafts/${id}/attacks`);

  // --- publish ---
  const last = find("#last", root);
  last?.addEventListener("change", () => {
    find("#publish", root).disabled = !find("#publish", root).dataset.ready || [...last.querySelectorAll("[type=checkbox]")].some((tick) => !tick.checked);
  });
  last?.addEventListener("submit", async (event) => {
    event.preventDefault();
    find("#publish", root).disabled = true;
    const ticks = Object.fromEntries([...last.querySelectorAll("[type=checkbox]")].map((tick) => [tick.name, tick.checked]));
    const done = await sent(`${base}/publish`, "POST", ticks);
    if (!done) return void (find("#publish", root).disabled = false);
    last.hidden = true;
    const panel = find("#done", root);
    for (const [name, text] of [["table", done.table], ["print", done.fingerprint.slice(0, 16)],
      ["written", done.policy_written ? "The policy file has it now: sulq serve opens it next time too." : "The policy file could not be written. Copy the policy from the right into it by hand."]]) find(`[data-f=${name}]`, panel).textContent = text;
    find("#first-grant", root).href = `/t/${encodeURIComponent(done.table)}/access`;
    panel.hidden = false;
    find("h2", panel).focus();
  });
  return () => { gone = true; clearTimeout(timer); attacked(); };
}
