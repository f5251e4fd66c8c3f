// The learn page: a live quote, a fit that streams its progress, pictures that stay until you leave.
export function start(root, app) {
  const { find } = app, base = `/console/${encodeURIComponent(root.dataset.table)}/learn`;
  const form = find("#learn", root), bar = find("#bar", root), found = find("#found", root);
  let timer = 0, asking = null, fitting = null, gone = false;

  const wish = () => ({
    method: form.method.value, label: form.label?.value || "", groups: Math.min(20, Math.max(2, +form.groups.value || 3)),
    columns: [...form.querySelectorAll("[name=columns]:checked")].map((box) => box.value), credits: +form.credits.value,
  });

  async function quote() {
    asking?.abort();
    asking = new AbortController();
    const body = wish();
    if (!(+body.credits > 0)) body.credits = 1;
    try {
      const reply = await app.send(`${base}/quote`, { method: "POST", body, signal: asking.signal });
      const text = await app.html(reply);
      if (!gone) bar.innerHTML = text;
    } catch (error) { app.unreachable(error); }
  }
  function changed() {
    const method = form.method.value;
    for (const field of form.querySelectorAll("[data-for]")) field.hidden = field.dataset.for !== method;
    find("#more-fields", root).hidden = method === "pca";
    if (find("#go", root)) find("#go", root).disabled = true;  // a stale price is never pressed
    clearTimeout(timer);
    timer = setTimeout(quote, 200);
  }
  form.addEventListener("input", (event) => {
    if (event.target.id === "sure") find("#go", root).disabled = !event.target.checked;
    else changed();
  });

  // data: {"said", "share"} while it learns; {"html", "state"} at its end.
  async function read(reply, take) {
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      held += value;
      const parts = held.split("\n\n");
      held = parts.pop();
      for (const part of parts) if (part.startsWith("data: ")) take(JSON.parse(part.slice(6)));
    }
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const go = find("#go", root);
    if (!go || go.disabled || fitting) return;
    go.disabled = true;
    fitting = new AbortController();
    const running = find("#running", root), said = find("#progress-said", root), meter = find("#progress", root);
    running.hidden = false;
    said.textContent = "Waiting for the clock …";
    meter.value = 0;
    let last = "";
    try {
      const reply = await app.send(`${base}/fit`, { method: "POST", body: wish(), signal: fitting.signal });
      if (!(reply.headers.get("content-type") || "").startsWith("text/event-stream")) put(await app.html(reply));
      else await read(reply, (one) => {
        if (one.html !== undefined) return put(one.html);
        last = one.said;
        said.textContent = one.said;
        meter.value = one.share;
      });
    } catch (error) {
      if (error.name !== "AbortError") app.unreachable(error);
      else if (!gone) stopped(last);
    }
    fitting = null;
    if (gone) return;
    running.hidden = true;
    app.refreshHead();
    quote();
  });

  function put(html) {
    const box = document.createElement("div");
    box.innerHTML = html;
    const made = box.firstElementChild;
    if (!made.classList.contains("card")) made.classList.add("span");
    found.prepend(made);
    (find("h2", made) || made).focus?.();
    app.say(made.dataset.say || made.textContent);
  }
  function stopped(last) {
    const note = app.made("div", `Stopped. ${last ? `${last} spent. ` : ""}What was bought is kept: learning the same again reuses it, free.`, "note span");
    found.prepend(note);
    app.say(note.textContent);
  }
  find("#stop", root).addEventListener("click", () => fitting?.abort());
  root.addEventListener("click", (event) => {
    const copy = event.target.closest("[data-python]");
    if (copy) app.copied(copy, find("pre", copy.closest("section")).textContent);
  });
  changed();
  return () => { gone = true; clearTimeout(timer); asking?.abort(); fitting?.abort(); };
}
