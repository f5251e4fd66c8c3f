"""How the report looks: the console's tokens, light and dark, and one sheet of A4 in print."""

from __future__ import annotations

import base64
import hashlib

LIGHT = (
    "--bg:#F6F5F2;--surface:#FFFFFF;--sunken:#EFEDE8;--line:#DCD8D0;--ink:#1A1D21;--ink-2:#454B52;"
    "--ink-3:#61676E;--accent:#0B5D63;--data:#17707A;--data-2:#B45F1E;--warn:#7F4600;"
    "--warn-soft:#FBF0DB;--bad:#A0261B;--bad-soft:#FAE8E5;--ok:#1D6638;--ok-soft:#E3F1E7"
)
DARK = (
    "--bg:#121518;--surface:#1A1E22;--sunken:#15181C;--line:#2D343A;--ink:#ECEEF0;--ink-2:#BCC4CB;"
    "--ink-3:#9AA4AC;--accent:#72C9C5;--data:#5FBFC4;--data-2:#F0A264;--warn:#F1C274;"
    "--warn-soft:#33270F;--bad:#FF9D90;--bad-soft:#3A1C18;--ok:#86D49E;--ok-soft:#16311F"
)
STYLE = (
    f":root{{color-scheme:light dark;{LIGHT}}}"
    f"@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}"
    """
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:450 12.5px/1.45 system-ui,-apple-system,
"Segoe UI",Roboto,"Noto Sans",sans-serif;font-variant-numeric:tabular-nums}
main{max-width:860px;margin:24px auto;padding:0 20px;display:grid;gap:12px}
header{display:flex;align-items:center;gap:12px}
header .mark{width:28px;height:15px;fill:var(--data);stroke:var(--ink);stroke-width:2}
header .mark path{fill:none}
h1{font-size:22px;line-height:28px;font-weight:650;margin:0}
h2{font-size:13px;line-height:18px;font-weight:640;margin:0 0 6px}
p{margin:0}
sup{line-height:0;font-size:.78em}
.said{font-size:14.5px;line-height:21px}
.muted,small{color:var(--ink-3);font-size:11.5px}
.end{margin-left:auto;text-align:right}
.card{background:var(--surface);border:1px solid var(--line);border-radius:10px;padding:12px 16px;
min-width:0}
.row{display:grid;gap:12px;grid-template-columns:1.25fr 1fr}
.big{font-size:26px;line-height:30px;font-weight:650}
.big small{font-size:13px;font-weight:450}
.gauge{display:block;width:100%;height:10px;border-radius:5px;background:var(--sunken);
border:1px solid var(--line);overflow:hidden;margin:8px 0 6px;fill:var(--data)}
.thin{height:6px;margin:6px 0 0;width:180px;max-width:100%}
.gauge.low{fill:var(--data-2)}
.chip{display:inline-block;border-radius:5px;padding:1px 8px;font-weight:600;
background:var(--sunken)}
.ok{background:var(--ok-soft);color:var(--ok)}
.bad{background:var(--bad-soft);color:var(--bad)}
.warn{background:var(--warn-soft);color:var(--warn)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 14px;margin:0}
.said+dl{margin-top:12px}
dt{color:var(--ink-3)}
dd{margin:0;min-width:0}
table{width:100%;border-collapse:collapse}
th{font-weight:600;color:var(--ink-2);text-align:left;padding:2px 10px 4px 0;
border-bottom:1px solid var(--line)}
td{padding:4px 10px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}
tr:last-child td{border-bottom:0;padding-bottom:0}
td:last-child,th:last-child{padding-right:0}
.n{text-align:right;white-space:nowrap}
.hazards td:first-child{font-weight:580;width:26%}
.hazards td:nth-child(2){width:41%}
.hazards td{color:var(--ink-2)}
.hazards td:first-child{color:var(--ink)}
code{font:11.5px ui-monospace,"SF Mono","Cascadia Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-variant-ligatures:none;overflow-wrap:anywhere}
@media (max-width:640px){.row{grid-template-columns:1fr}main{margin:12px auto;padding:0 12px}
header{flex-wrap:wrap}.end{margin-left:0;text-align:left}}
@page{size:A4;margin:9mm}
@media print{"""
    f":root{{{LIGHT}}}"
    """
body{background:none;font-size:9.6px;line-height:1.38;-webkit-print-color-adjust:exact;
print-color-adjust:exact}
main{max-width:none;margin:0;padding:0;gap:7px}
h1{font-size:17px;line-height:22px}h2{font-size:10.5px;line-height:14px;margin-bottom:3px}
.card{padding:7px 11px;border-radius:7px;break-inside:avoid}.row{gap:7px}
.said{font-size:10.6px;line-height:15px}.said+dl{margin-top:6px}.thin{height:5px;margin-top:4px}
.big{font-size:19px;line-height:23px}.big small{font-size:10px}
.gauge{height:7px;margin:5px 0 4px}
.muted,small,code{font-size:8.4px}
td{padding:2.2px 8px 2.2px 0}dl{gap:2px 10px}.chip{padding:0 6px}}
"""
)
SHA256 = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
"""Of the sheet: a policy of style-src 'sha256-...' lets it in and no other."""
LOGO = (
    '<svg class="mark" width="28" height="15" viewBox="0 0 25 13" aria-hidden="true">'
    '<path d="M2 1v11M23 1v11M2 6.5h6.5M16.5 6.5H23"/>'
    '<circle cx="12.5" cy="6.5" r="4" stroke="none"/></svg>'
)
