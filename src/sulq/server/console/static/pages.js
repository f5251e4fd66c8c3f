// What several pages need: the audit report opens in a tab of its own, with the bearer.
export async function openReport(table, app) {
  const shown = open("about:blank", "_blank");
  const reply = await app.send(`/v1/tables/${encodeURIComponent(table)}/report`);
  if (!reply.ok) { shown?.close(); app.say("This server makes no reports; sulq report does.", true); return false; }
  const url = URL.createObjectURL(new Blob([await reply.text()], { type: "text/html" }));
  if (shown) shown.location.replace(url); else location.assign(url);
  return true;
}

export function save(name, text, kind = "application/jsonl") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function start(root, app) {
  root.querySelector("[data-report]")?.addEventListener("click", async (event) => {
    const button = event.currentTarget;
    if (!await openReport(root.dataset.table, app)) button.textContent = "No report here: use sulq report";
  });
}
