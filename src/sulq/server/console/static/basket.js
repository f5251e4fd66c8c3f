// The basket: statements that are priced as one plan. It is kept in this tab, and so is the key of a
// request until its reply has come: a retry sends the same one and is charged once.
export function basket(root, app, price) {
  const table = root.dataset.table, path = `/console/${encodeURIComponent(table)}/basket`, find = (what) => root.querySelector(what);
  const KEPT = `sulq.basket.${table}`, KEY = `sulq.basket-key.${table}`;
  let held = JSON.parse(sessionStorage.getItem(KEPT) || "[]"), busy = false, trip = 0;

  async function show() {
    const mine = ++trip;
    sessionStorage.setItem(KEPT, JSON.stringify(held));
    if (!held.length) return void (find("#basket").hidden = true);
    try {
      const reply = await app.send(path, { method: "POST", body: { sql: held } });
      const html = await app.html(reply);
      if (mine === trip && reply.status !== 401 && root.isConnected) app.put(html);
    } catch (error) { app.unreachable(error); }
  }

  function put(text) {
    sessionStorage.removeItem(KEY);
    if (text && !held.includes(text)) held.push(text);
    app.say(`${held.length} in the basket.`);
    return show();
  }

  async function ask(button) {
    if (busy) return;
    busy = button.disabled = true;
    const key = sessionStorage.getItem(KEY) || app.newKey();
    sessionStorage.setItem(KEY, key);
    button.textContent = "Waiting for the clock …";
    try {
      const reply = await app.send(`${path}/ask`, { method: "POST", body: { sql: held, max_credits: button.dataset.most }, key });
      const html = await app.html(reply);
      if (reply.status === 401 || !root.isConnected) return;
      if (reply.ok) { held = []; sessionStorage.setItem(KEPT, "[]"); }
      if (reply.status < 500 && reply.status !== 429) sessionStorage.removeItem(KEY);
      app.put(html);
      if (!reply.ok) show();
      else price();
    } catch (error) {
      button.textContent = "Fetch my answers, free";
      button.disabled = false;
      app.unreachable(error);
    } finally { busy = false; }
    app.refreshHead();
  }

  root.addEventListener("click", (event) => {
    const out = event.target.closest("[data-out]"), button = event.target.closest("#basket-ask");
    if (out) { sessionStorage.removeItem(KEY); held.splice(Number(out.dataset.out), 1); show(); }
    else if (event.target.closest("[data-empty]")) { sessionStorage.removeItem(KEY); held = []; show(); }
    else if (button) ask(button);
  });
  if (held.length) show();
  return put;
}
