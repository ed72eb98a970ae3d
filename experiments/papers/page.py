"""The report as one HTML file that needs nothing else: uPlot's script and style are in it."""

import collections
import html
import json
from pathlib import Path

from charts.parts import number

HERE = Path(__file__).resolve().parent


def write(report, uplot):
    """`uplot` is the folder of its distribution."""
    script = (uplot / "uPlot.iife.min.js").read_text() + "\n" + (HERE / "page.js").read_text()
    style = (uplot / "uPlot.min.css").read_text() + "\n" + (HERE / "page.css").read_text()
    # The data ends where a script's end tag would, so it has none.
    data = json.dumps({"charts": report["charts"]}, ensure_ascii=False).replace("<", "\\u003c")
    sections = "\n".join([*(section(report, step) for step in report["steps"]), not_made(report)])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Quelea: the papers' experiments</title>
<style>{style}</style>
</head>
<body>
<h1>The papers' experiments</h1>
{facts(report)}
{sections}
<script type="application/json" id="report">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def facts(report):
    words = [*made(report), f"scale {report['scale']}", f"<code>{html.escape(report['command'])}</code>"]
    return "".join(f'<p class="facts">{word}</p>' for word in words)


def made(of):
    """Where and when: a report, or a step, which another machine may have made."""
    machine = of["machine"]
    words = [f"{machine['cores']} cores of {machine['processor']}, kernel {machine['kernel']}", f"{of['date']}, commit {of['commit']}"]
    return [html.escape(word) for word in words]


def section(report, step):
    charts = [chart for chart in report["charts"] if chart["step"] == step["name"]]
    parts = [f"<h2>{html.escape(step['paper'])}: {html.escape(step['title'])}</h2>"]
    if step.get("error"):
        parts.append(f'<p class="missing">It ended early: {html.escape(step["error"])}</p>')
    if step.get("unfinished"):
        parts.append(f'<p class="missing">Not all of it yet: {html.escape(step["unfinished"])}.</p>')
    for missing in step.get("missing", []):
        parts.append(f'<p class="missing">{html.escape(missing)}, and so it is not in these charts.</p>')
    parts.append(f'<div class="charts">{"".join(figure(chart) for chart in charts)}</div>')
    if step.get("note"):
        parts.append(f'<p class="facts">{html.escape(step["note"])}</p>')
    if step.get("versions"):
        parts.append(f'<p class="facts">{html.escape("; ".join(step["versions"]))}</p>')
    # Results of earlier versions do not say where they were made.
    if "machine" in step and made(step) != made(report):
        parts.append(f'<p class="facts">{"; ".join(made(step))}</p>')
    commands = html.escape("\n".join(step.get("commands", [])))
    parts.append(f"<details><summary>{took(step['seconds'])}; the commands</summary><pre>{commands}</pre></details>")
    return "\n".join(parts)


def not_made(report):
    # Reports of earlier versions do not say.
    missing = report.get("not_made", [])
    if not missing:
        return ""
    rows = "".join(f"<li>{html.escape(one['paper'])}: {html.escape(one['title'])} ({took(one['minutes'] * 60)})</li>" for one in missing)
    return f"<h2>Not in this report</h2>\n<p>Of this scale there are also:</p>\n<ul>{rows}</ul>"


def took(seconds):
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3600:.1f} h"


def figure(chart):
    return f"""<figure>
<h3>{html.escape(chart['title'])}</h3>
<div id="chart-{html.escape(chart['name'])}"></div>
<figcaption>
<p><b>The paper:</b> {html.escape(chart['says'])}</p>
{here(chart)}{marks(chart)}
<p class="differs">{html.escape(chart['differs'])}</p>
<details><summary>The numbers</summary>{table(chart)}</details>
</figcaption>
</figure>"""


def here(chart):
    # Charts of earlier versions have none.
    return f"<p><b>Here:</b> {html.escape(chart['here'])}</p>\n" if chart.get("here") else ""


MARKS = {"relay": "a relay started", "move": "a producer moved", "loss": "messages were lost"}


def marks(chart):
    """What the lines across a chart mean, and how often each is there."""
    count = collections.Counter(mark["kind"] for mark in chart["marks"])
    shown = "".join(f'<span class="mark {kind}">{words}: {count[kind]}</span>' for kind, words in MARKS.items() if count[kind])
    return f"<p>{shown}</p>" if shown else ""


def table(chart):
    xs = sorted({point[0] for one in chart["series"] for point in one["points"]})
    names = chart["x"]["categories"]
    head = "".join(f"<th>{html.escape(one['name'])}</th>" for one in chart["series"])
    rows = []
    for x in xs:
        cells = [{point[0]: point[1:] for point in one["points"]}.get(x) for one in chart["series"]]
        shown = "".join(f"<td>{cell(values)}</td>" for values in cells)
        label = names[int(x)] if names else number(x)
        rows.append(f"<tr><td>{html.escape(label)}</td>{shown}</tr>")
    return f"<table><thead><tr><th>{html.escape(chart['x']['label'])}</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def cell(values):
    """A mean, and behind it from where to where the runs reach."""
    if values is None:
        return "–"
    mean, *reach = map(number, values)
    return f"{mean} ({reach[0]} to {reach[1]})" if reach and reach[0] != reach[1] else mean
