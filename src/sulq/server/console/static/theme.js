// Before the first paint: the colours the reader chose. Nothing else is kept beyond the tab.
try {
  const kept = localStorage.getItem("sulq.theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch { /* storage is off: the system's colours */ }
