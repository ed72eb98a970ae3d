"""What things cost by how many of them there are, with fitted laws."""

import scaling as laws

from .parts import NOT_MEASURED, axis, chart, sentence

MADE = {"cpu_us": "µs of CPU to make them", "bytes": "bytes of memory", "start_ms": "ms to start with them"}
SCALED = {
    # What is counted: its name, and its figures with their units.
    "queues": ("durable queues", MADE),
    "bindings": ("bindings of one topic exchange", MADE),
    "connections": ("idle connections", {"cpu_us": "µs of CPU to open them", "bytes": "bytes of memory"}),
    "messages": ("durable messages of 100 B in the log", {
        "cpu_us": "µs of CPU to publish them", "bytes": "bytes of memory", "disk_bytes": "bytes on the disk", "start_ms": "ms to start with them"}),
}
LEAST = {"cpu_us": 50_000, "bytes": 10e6}
"""What is less of a figure is noise: what the first of them brings along, and memory that the process has anyway."""
BESIDE = {**{kind: name for kind, (name, _) in SCALED.items() if kind != "connections"}, "consumers": "consumers of the queue"}


def scaling(results):
    charts = []
    for kind, (name, figures) in SCALED.items():
        for figure, words in figures.items():
            series = [(words, [(one["count"], one[figure]) for one in results[kind] if one[figure] > 0])]
            charts.append(chart(f"scaling-{kind}-{figure}", f"{sentence(words)}: {name}", axis(name, log=True),
                                axis(words, log=True), series, NOT_MEASURED, "Of all of them.", here=fitted(series, [LEAST.get(figure, 0)])))
    beside = [(name, [(one["count"], one["message_cpu_us"]) for one in results[kind]]) for kind, name in BESIDE.items()]
    charts.append(chart("scaling-beside", "CPU of a transient message beside what stands", axis("how many", log=True), axis("µs a message"),
                        beside, NOT_MEASURED,
                        "One publisher, one consumer, 100 B; with consumers, all of them on the one queue; with bindings, by keys that are "
                        "matched with all of them and never repeat.", here=fitted(beside, [0] * len(beside))))
    return charts


def fitted(series, least):
    found = [f"{words}: {law}" for (words, points), floor in zip(series, least) if (law := laws.law(points, floor))]
    noise = ", to what is more than 0.05 s or 10 MB" if any(least) else ""
    return f"Fitted{noise}: {'; '.join(found)}. A power of 1 is linear." if found else "Too few to fit."
