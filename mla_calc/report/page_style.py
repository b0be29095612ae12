"""The style of an HTML page of several answers: on a screen, light and dark, and on A4 paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1c2024; --soft: #5c656e; --line: #d8dde2; --card: #f5f7f9; --accent: #00598a;
  --warn: #8a4b00; --warn-card: #fff6e9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --ink: #e4e8ec; --soft: #9aa5af; --line: #333a41; --card: #1d2226; --accent: #6cbcf0;
    --warn: #f0b765; --warn-card: #2a2318;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
body {
  margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 68rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
  overflow-wrap: anywhere;
}
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .35rem; text-wrap: balance; }
h2 {
  font-size: 1.35rem; line-height: 1.3; margin: 3rem 0 .6rem; padding-top: 1.1rem; border-top: 1px solid var(--line);
}
h3 { font-size: 1.02rem; margin: 1.8rem 0 .4rem; }
h2 .place { color: var(--soft); font-weight: 400; margin-right: .5em; }
p { margin: .5rem 0; max-width: 50rem; }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 2px; }
.soft, small { color: var(--soft); }
.lead { font-size: 1.05rem; color: var(--soft); margin: 0; }
code { font: .86em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
pre {
  margin: .6rem 0; padding: .6rem .8rem; background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  white-space: pre-wrap;
}
nav { margin: 1.6rem 0 0; padding: .8rem 1.1rem; border: 1px solid var(--line); border-radius: 8px; }
nav ol { columns: 3 13rem; margin: 0; padding: 0; list-style: none; }
nav li { margin: 0; padding: .12rem 0; break-inside: avoid; }
nav .place { display: inline-block; width: 1.8em; color: var(--soft); }
.key {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(13rem, 45%), 1fr)); gap: .7rem;
  margin: 1rem 0 1.3rem;
}
.key div {
  background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .7rem .9rem;
  display: flex; flex-direction: column; break-inside: avoid;
}
.key b { font-size: 1.3rem; line-height: 1.3; font-weight: 650; font-variant-numeric: tabular-nums; }
.key span { color: var(--soft); font-size: .86rem; line-height: 1.35; }
.summary { padding-left: 0; list-style: none; max-width: 54rem; margin: 1rem 0; }
.summary li { margin: .55rem 0; }
.summary a { font-weight: 600; }
.tables { display: flex; flex-wrap: wrap; align-items: flex-start; column-gap: 3.2rem; }
.table { overflow-x: auto; margin: .8rem 0 1rem; max-width: 100%; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .35rem; }
@media (min-width: 50rem) { caption { white-space: nowrap; } }
th, td {
  text-align: left; vertical-align: baseline; padding: .28rem 1.3rem .28rem 0; white-space: pre-wrap;
  overflow-wrap: normal;
}
th { font-weight: 600; color: var(--soft); }
thead th, thead td { border-bottom: 1.5px solid var(--line); }
tbody tr + tr td { border-top: 1px solid var(--line); }
td:last-child, th:last-child { padding-right: .2rem; }
.number { text-align: right; white-space: nowrap; }
.said { font-weight: 500; }
.command { margin: .35rem 0 1rem; color: var(--soft); font-size: .9rem; max-width: none; }
.command span { display: inline-block; }
.missing {
  background: var(--warn-card); border-left: 3px solid var(--warn); border-radius: 0 6px 6px 0;
  padding: .55rem .9rem; margin: .8rem 0;
}
.missing b { color: var(--warn); }
figure { margin: 1rem 0 1.2rem; break-inside: avoid; }
.picture { background: #ffffff; border: 1px solid var(--line); border-radius: 8px; padding: .5rem; }
.picture svg { display: block; width: 100%; height: auto; }
details { margin: .5rem 0; }
summary { cursor: pointer; font-weight: 600; }
dl { margin: .5rem 0 1rem; }
dt { margin-top: .6rem; }
dd { margin: .1rem 0 0 1.4rem; }
ul { padding-left: 1.2rem; max-width: 56rem; }
li { margin: .25rem 0; }
.long li, .long dd, .long dt { font-size: .9rem; line-height: 1.5; }
@page { size: A4; margin: 16mm 14mm; }
@media print {
  :root {
    color-scheme: light; --paper: #ffffff; --ink: #000000; --soft: #4a5258; --line: #c4cad0; --card: #f5f7f9;
    --accent: #00415f; --warn: #6e3c00; --warn-card: #fff6e9;
  }
  body { padding: 0; max-width: none; font-size: 9.5pt; line-height: 1.42; }
  h1 { font-size: 18pt; }
  h2 { font-size: 13pt; margin-top: 1.4rem; }
  h3 { font-size: 10pt; margin-top: 1rem; }
  h2, h3, caption, summary, p.soft { break-after: avoid; }
  tr, .key div, .missing, pre, dt { break-inside: avoid; }
  thead { display: table-header-group; }
  .table { overflow: visible; break-inside: avoid; }
  thead .number { white-space: normal; }  /* or many models would run off the paper */
  .tables { column-gap: 1.6rem; }
  table { font-size: 7.8pt; }
  th, td { padding-right: .6rem; }
  .key { grid-template-columns: repeat(4, 1fr); gap: .4rem; }
  .key b { font-size: 11.5pt; }
  .key span { font-size: 7.5pt; }
  .command { font-size: 8pt; break-before: avoid; }
  .said { break-before: avoid; }
  .long dt, .long dd, .long li { font-size: 7.6pt; line-height: 1.35; margin-top: .25rem; }
  dd { break-inside: avoid; }
  nav ol { columns: 3; font-size: 8.8pt; }
  nav .place { width: 1.6em; }
  a { text-decoration: none; }
}
"""
