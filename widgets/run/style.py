"""The wizards' style in JupyterLab's own colours, light and dark; those of words are chosen to be read on either."""

STYLE = """<style>
.offramp { font-size: var(--jp-ui-font-size1, 13px); color: var(--jp-ui-font-color1, #1c2733); line-height: 1.45;
  max-width: 72rem; overflow: visible; padding: .2rem; }
.offramp .widget-box { overflow: visible; }
.offramp .widget-html, .offramp .widget-html-content { line-height: 1.45; color: inherit; overflow: visible;
  font-size: inherit; height: auto; }
.offramp h2 { font-size: 1.3em; margin: 0 0 .2em; } .offramp p { margin: .25em 0; }
.offramp h3 { font-size: 1.08em; margin: 1em 0 .3em; padding-bottom: .15em;
  border-bottom: 1px solid var(--jp-border-color2, #ccc); }
.offramp .soft { color: var(--jp-ui-font-color2, #555); } .offramp code { overflow-wrap: anywhere; }
.offramp .good { color: #1b5e20; } .offramp .bad { color: #a8201a; } .offramp .open { color: #7a4a00; }
.offramp strong { font-weight: 600; }
[data-jp-theme-light="false"] .offramp .good { color: #81c784; }
[data-jp-theme-light="false"] .offramp .bad { color: #ff9389; }
[data-jp-theme-light="false"] .offramp .open { color: #ffb74d; }
.offramp .alert { border-left: 4px solid var(--jp-error-color1, #d32f2f); padding: .3em .7em;
  background: var(--jp-layout-color2, #eee); overflow-wrap: anywhere; }
.offramp .todo { border-left: 4px solid var(--jp-warn-color1, #f57c00); padding: .3em .7em;
  background: var(--jp-layout-color2, #eee); font-weight: 600; }
.offramp ol.stages { list-style: none; display: grid; grid-template-columns: repeat(auto-fit, minmax(6.5rem, 1fr));
  gap: .35em; margin: .4em 0; padding: 0; }
.offramp ol.stages li { border: 1px solid var(--jp-border-color1, #bbb); border-radius: 4px;
  padding: .35em .6em; background: var(--jp-layout-color1, #fff); }
.offramp ol.stages li small { display: block; color: var(--jp-ui-font-color2, #555); }
.offramp ol.stages li.here { border: 2px solid var(--jp-brand-color1, #1976d2); font-weight: 600;
  background: var(--jp-layout-color2, #eee); }
.offramp ol.stages li.wanted { border-style: dashed; border-width: 2px; border-color: var(--jp-brand-color1, #1976d2); }
.offramp table { border-collapse: collapse; margin: .3em 0; font-size: inherit; table-layout: auto; }
.offramp th, .offramp td { border-bottom: 1px solid var(--jp-border-color2, #ddd); padding: .2em .7em .2em 0;
  text-align: left; vertical-align: top; background: none; max-width: 26rem; overflow-wrap: break-word;
  white-space: normal; }
.offramp th { font-weight: 600; } .offramp td.number, .offramp th.number { text-align: right;
  font-variant-numeric: tabular-nums; }
.offramp .bar { display: inline-block; width: 7rem; height: .7em; border: 1px solid var(--jp-border-color1, #bbb);
  margin-right: .5em; } .offramp .bar i { display: block; height: 100%; background: var(--jp-brand-color1, #1976d2); }
.offramp ul.checks { list-style: none; margin: .2em 0; padding: 0; }
.offramp ul.checks li { margin: .15em 0; display: flex; } .offramp ul.checks b { flex: 0 0 6rem; }
.offramp svg { display: block; } .offramp svg text { fill: var(--jp-ui-font-color2, #555); font-size: 11px; }
.offramp svg polyline { fill: none; stroke: var(--jp-brand-color1, #1976d2); stroke-width: 1.8; }
.offramp svg line { stroke: var(--jp-border-color1, #bbb); }
.offramp svg.within rect { fill: var(--jp-border-color1, #bbb); }
.offramp svg.within .hollow { fill: none; stroke: var(--jp-ui-font-color1, #1c2733); stroke-width: 1.5; }
.offramp svg.within .filled, .offramp i.forwards { fill: var(--jp-brand-color1, #1976d2);
  background: var(--jp-brand-color1, #1976d2); } .offramp i.first { background: var(--jp-success-color1, #388e3c); }
.offramp i.deleted, .offramp i.backwards { background: var(--jp-error-color1, #d32f2f); }
.offramp div.directions { display: flex; width: 30rem; max-width: 100%; height: .8em; }
.offramp ul.directions { list-style: none; margin: .2em 0; padding: 0; }
.offramp ul.directions i { display: inline-block; width: .7em; height: .7em; margin-right: .4em; }
.offramp .side { display: flex; flex-wrap: wrap; gap: 0 2.5rem; align-items: flex-start; }
.offramp details summary { cursor: pointer; } .offramp .log { max-height: 18rem; overflow: auto; }
.offramp iframe { width: 100%; height: 26rem; border: 1px solid var(--jp-border-color1, #bbb); background: #fff; }
.offramp button:focus-visible, .offramp input:focus-visible, .offramp select:focus-visible,
.offramp summary:focus-visible, .offramp a:focus-visible {
  outline: 2px solid var(--jp-brand-color1, #1976d2) !important;
  outline-offset: 2px; }
.offramp .widget-label { color: inherit; } .offramp a { color: var(--jp-content-link-color, #1565c0); }
.offramp .offramp-safety { position: sticky; top: 0; z-index: 5; padding: .3em .5em; overflow: visible;
  background: var(--jp-layout-color2, #eee); border: 1px solid var(--jp-border-color1, #bbb); border-radius: 4px;
  flex-flow: row wrap; align-items: center; }
.offramp .widget-html:has(> .widget-html-content:empty) { display: none; }
.offramp .offramp-safety > .widget-html { flex: 1 1 100%; }
/* What scrolls by itself would keep the bar of the ways to undo from staying in view. */
.jp-OutputArea-output:has(.offramp-safety), .jp-OutputArea-child:has(.offramp-safety),
.jp-OutputArea:has(.offramp-safety) { overflow: visible !important; }
</style>"""
