// The access page: grant, change, revoke. A token is on screen once and kept nowhere.
export function start(root, app) {
  const { find, sent } = app, base = `/v1/tables/${encodeURIComponent(root.dataset.table)}/grants`;
  const form = find("#grant", root), panels = [find("#revoke", root), find("#change", root)];
  let chosen = "", from = null;
  const number = (n) => (n >= 100 ? Math.floor(n) : Math.floor(n * 100) / 100).toLocaleString("en-US");
  const fill = (panel, facts) => { for (const spot of panel.querySelectorAll("[data-f]")) spot.textContent = facts[spot.dataset.f]; };
  const seconds = (day) => Math.floor(new Date(`${day}T23:59:59`).getTime() / 1000);

  function sum() {
    if (!form) return;
    const held = find("#sums", root).dataset, share = +form.credits.value || 0, asks = form.role.value === "analyst";
    const here = asks ? share : 0, free = +held.free - here, words = find("#sum > div", root);
    const helped = find("#share-help", root);
    find("#share-field", root).hidden = !asks;
    const bold = app.made("b", free < 0 ? `${number(-free)} credits too many.` : `${number(free)} credits stay ungranted.`);
    words.replaceChildren(bold, ` ${number(+held.left)} are left in the table: ${number(+held.granted)} in granted shares, ${asks ? `${number(here)} here, ` : ""}${number(Math.max(0, free))} with you.`);
    find("#sum", root).className = free < 0 ? "note warn" : "note";
    find("#give", root).textContent = asks ? `Grant ${number(share)} ${share === 1 ? "credit" : "credits"}` : "Make an auditor’s token";
    find("#give", root).disabled = free < 0 || (asks && !share);
    form.credits.setAttribute("aria-invalid", String(free < 0));
    helped.textContent = free < 0 ? "More than is left to grant." : "";
    helped.classList.toggle("bad", free < 0);
  }

  async function refresh() {
    find("#grants", root).innerHTML = await app.html(await app.send(`/console/${encodeURIComponent(root.dataset.table)}/grants`));
    sum();
    app.refreshHead();
  }

  function close() {
    for (const panel of panels) panel.hidden = true;
    from?.focus();
  }

  root.addEventListener("click", (event) => {
    if (event.target.closest("[data-keep]")) return close();
    const act = event.target.closest("[data-do]");
    if (!act) return;
    const row = act.closest("tr").dataset, kind = act.dataset.do;
    chosen = row.name;
    from = act;
    for (const panel of panels) panel.hidden = true;
    if (kind === "renew") {
      form.name.value = row.name;
      form.role.value = row.role;
      sum();
      return form.credits.focus();
    }
    const panel = find(`#${kind}`, root);
    panel.reset();
    fill(panel, row);
    panel.hidden = false;
    panel.scrollIntoView({ block: "nearest" });
    find(kind === "revoke" ? "[data-keep]" : "input", panel).focus();
  });
  root.addEventListener("keydown", (event) => { if (event.key === "Escape" && panels.some((panel) => !panel.hidden)) close(); });

  find("#revoke", root).addEventListener("submit", async (event) => {
    event.preventDefault();
    const reason = encodeURIComponent(event.target.reason.value);
    const done = await sent(`${base}/${encodeURIComponent(chosen)}?reason=${reason}`, "DELETE");
    if (!done) return;
    close();
    await refresh();
    app.say(`${chosen} revoked. ${number(done.returned)} credits are free again.`);
  });
  find("#change", root).addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = given(event.target);
    if (!Object.keys(body).length) return close();
    if (!await sent(`${base}/${encodeURIComponent(chosen)}`, "PATCH", body)) return;
    close();
    await refresh();
    app.say(`${chosen} changed.`);
  });

  function given(fields) {
    const body = {};
    if (+fields.credits.value) body.credits = +fields.credits.value;
    if (fields.until.value) body.expires = seconds(fields.until.value);
    if (fields.rate.value.trim()) body.rate = fields.rate.value.trim();
    return body;
  }

  form?.addEventListener("input", sum);
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = { ...given(form), name: form.name.value.trim(), role: form.role.value };
    if (body.role === "auditor") delete body.credits;
    const made = await sent(base, "POST", body);
    if (!made) return;
    const panel = find("#token", root);
    fill(panel, { name: body.name });
    find("#token-text", root).textContent = made.token;
    find("#token-link", root).textContent = made.link;
    panel.hidden = false;
    form.reset();
    await refresh();
    find("h2", panel).focus();
    app.say(`Token for ${body.name}. Shown once, now.`);
  });
  sum();
  return () => { for (const spot of ["#token-text", "#token-link"]) find(spot, root).textContent = ""; };
}
