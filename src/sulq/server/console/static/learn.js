// The learn page: a fit that streams its progress, pictures that stay until you leave.
export function start(root, app) {
  const { find } = app, form = find("#learn", root), found = find("#found", root);
  let fitting = null, gone = false;

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
      const reply = await app.send(`${form.dataset.path}/fit`, { method: "POST", body: app.fields(form), signal: fitting.signal });
      if (!reply.headers.get("content-type")?.startsWith("text/event-stream")) show(await app.html(reply));
      else await read(reply, (one) => {
        if (one.html !== undefined) return show(one.html);
        said.textContent = one.said;
        meter.value = one.share;
        last = `${one.said} spent. `;
      });
    } catch (error) {
      if (error.name !== "AbortError") app.unreachable(error);
      else if (!gone) show(`<div class="note">Stopped. ${last}What was bought is kept: learning the same again reuses it, free.</div>`);
    }
    fitting = null;
    if (gone) return;
    running.hidden = true;
    app.refreshHead();
    app.follow(form, 0);
  });

  function show(html) {
    const made = app.parsed(html).firstElementChild;
    if (!made.classList.contains("card")) made.classList.add("span");
    found.prepend(made);
    find("h2", made)?.focus();
    app.say(made.dataset.say || made.textContent);
  }
  find("#stop", root).addEventListener("click", () => fitting?.abort());
  return () => { gone = true; fitting?.abort(); };
}
