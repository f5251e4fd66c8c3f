// Completion in the editor: columns, functions and the table where a word is typed, declared values
// inside quotes. The list opens by itself with nothing chosen, so Enter and Tab stay what they are;
// Ctrl+Space and the arrows choose. It closes with the word.
const FUNCTIONS = "COUNT(*) AVG( SUM( MEDIAN( MIN( MAX( STDDEV( CORR( FLOOR( ROUND( LEAST( GREATEST(".split(" ");
const PLAIN = /^[A-Za-z_]\w*$/;
const VALUE = /("[^"]+"|[A-Za-z_]\w*)\s*(?:=|<>|!=|(?:NOT\s+)?IN\s*\((?:\s*'(?:[^']|'')*'\s*,)*)\s*'((?:[^']|'')*)$/i;
const MOST = 60;

export function completion(root, app, sql, insert) {
  const find = (what) => root.querySelector(what), list = find("#complete"), values = new Map();
  const names = [...new Set([...root.querySelectorAll("[data-column]")].map((pick) => pick.dataset.column))];
  const words = [...names.map((text) => ({ text, said: "column" })), ...FUNCTIONS.map((text) => ({ text, said: "function" }))];
  if (!names.includes(root.dataset.asked)) words.push({ text: root.dataset.asked, said: "table" });
  let chosen = -1, offered = [], from = 0;

  // The declared values of a column as the builder's filter lists them, with their labels.
  async function valuesOf(column) {
    const name = names.find((each) => each.toLowerCase() === column.toLowerCase());
    if (name && !values.has(name)) {
      values.set(name, []);
      try {
        const reply = await app.send(`/console/${encodeURIComponent(root.dataset.table)}/filter?column=${encodeURIComponent(name)}`);
        const found = reply.ok ? [...app.parsed(await reply.text()).querySelectorAll(".ticks label")] : [];
        values.set(name, found.map((label) => ({ text: label.querySelector("input").value, said: label.textContent.trim() })));
      } catch (error) { app.unreachable(error); }
    }
    return values.get(name) || [];
  }

  async function look(asked = false) {
    const before = sql.value.slice(0, sql.selectionStart), inside = VALUE.exec(before);
    const open = (before.match(/'/g) || []).length % 2, word = open ? "" : /[A-Za-z_]\w*$/.exec(before)?.[0] || "";
    const typed = (inside ? inside[2] : word).toLowerCase();
    const known = inside ? await valuesOf(inside[1].replaceAll('"', "")) : open ? [] : words;
    if (before !== sql.value.slice(0, sql.selectionStart) || !root.isConnected) return;
    offered = inside || asked || word.length > 1 ? known.filter(({ text, said }) => inside
      ? `${text} ${said}`.toLowerCase().includes(typed) : text.toLowerCase().startsWith(typed)).slice(0, MOST) : [];
    if (!asked && offered.some(({ text }) => text.toLowerCase() === (inside ? `'${typed}'` : typed))) offered = [];
    from = before.length - (inside ? inside[2].length + 1 : word.length);
    chosen = asked ? 0 : -1;
    draw();
    if (asked && offered.length) app.say(`${offered.length} proposals. ${offered[0].text}`);
  }

  function close() {
    offered = [];
    draw();
  }

  function draw() {
    list.hidden = !offered.length;
    sql.removeAttribute("aria-activedescendant");
    if (list.hidden) return;
    list.replaceChildren(...offered.map(({ text, said }, index) => {
      const option = app.made("button", text, "mono");
      option.type = "button"; option.tabIndex = -1; option.id = `word-${index}`;
      if (said !== text.replaceAll("'", "")) option.append(" ", app.made("span", said, "muted"));
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", String(index === chosen));
      option.addEventListener("mousedown", (event) => { event.preventDefault(); accept(index); });
      return option;
    }));
    place();
    if (chosen < 0) return;
    sql.setAttribute("aria-activedescendant", `word-${chosen}`);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  }

  // At the word, under its line; custom properties are set through the CSSOM, which CSP allows.
  function place() {
    const lines = sql.value.slice(0, from).split("\n"), line = find("#paint").children[lines.length - 1];
    const editor = find(".editor").getBoundingClientRect(), spot = document.createRange();
    let left = lines.at(-1).length;
    spot.selectNodeContents(line);
    for (const piece of texts(line)) {
      if (left <= piece.length) { spot.setStart(piece, left); spot.setEnd(piece, Math.min(left + 1, piece.length)); break; }
      left -= piece.length;
    }
    const at = spot.getBoundingClientRect(), most = editor.width - list.offsetWidth - 8;
    list.style.setProperty("--y", `${Math.round(at.bottom - editor.top) + 4}px`);
    list.style.setProperty("--x", `${Math.round(Math.max(8, Math.min(at.left - editor.left, most)))}px`);
  }

  const texts = (node) => node.nodeType === Node.TEXT_NODE ? [node] : [...node.childNodes].flatMap(texts);

  function accept(index) {
    const { text, said } = offered[index], end = sql.selectionStart, over = text.startsWith("'") && sql.value[end] === "'" ? 1 : 0;
    close();
    insert(said === "column" && !PLAIN.test(text) ? `"${text.replaceAll('"', '""')}"` : text, from, end + over);
    close();
  }

  function pressed(event) {
    const { key } = event, step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (event.ctrlKey && key === " ") { event.preventDefault(); return void look(true); }
    if (list.hidden) return;
    if (step) {
      event.preventDefault();
      chosen = (chosen < 0 ? (step > 0 ? 0 : offered.length - 1) : chosen + step + offered.length) % offered.length;
      draw();
    }
    else if (chosen >= 0 && (key === "Enter" || key === "Tab")) { event.preventDefault(); accept(chosen); }
    else if (key === "Escape") { event.preventDefault(); close(); }
    else if (/^(Enter|Tab|Arrow|Home|End)/.test(key)) close();
  }

  sql.addEventListener("blur", close);
  return { look, pressed };
}
