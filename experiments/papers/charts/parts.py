"""What all charts are made of."""

ONE_MACHINE = (
    "The paper has a host for each of publisher, broker and consumer, with eight cores and 1 Gbit/s Ethernet or InfiniBand. "
    "Here all share the cores of one machine and loopback, so whoever needs more CPU time slows the others down too."
)
NOT_MEASURED = "The paper does not measure it."


def chart(name, title, x, y, series, says, differs, marks=(), here=None):
    """`x` and `y` are axes (`axis`), `series` a list of (name, [(x, y), …]), where a point of several runs may be (x, mean, lowest,
    highest). Points without a value are left out. `marks` are what happened at an x: (x, kind), of the kinds in page.css. `here` says in
    a sentence what came of it, as the paper's own words in `says` do."""
    kept = []
    for label, points in series:
        found = [list(point) for point in points if None not in point[:2]]
        if found:
            kept.append({"name": label, "points": found})
    whole = {"name": name, "title": title, "x": x, "y": y, "series": kept, "says": says, "here": here, "differs": differs}
    return whole | {"marks": [{"x": at, "kind": kind} for at, kind in marks]} if kept else None


def beside(series, ours, at, where):
    """How one of several series stands to the others at an x, in words; none where it, or all others, have no value there."""
    values = {name: point[1] for name, points in series for point in points if point[0] == at and point[1]}
    mine = values.pop(ours, None)
    if not mine or not values:
        return None
    others = [f"{ratio(mine / value)} × {name}'s {number(value)}" for name, value in values.items()]
    return f"{where}, {ours} has {number(mine)}: {', '.join(others)}."


def sentence(words):
    return f"{words[0].upper()}{words[1:]}"


def ratio(value):
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.4g}"


def axis(label, log=False, categories=None):
    return {"label": label, "log": log, "categories": categories}


def size_axis():
    return axis("bytes of a message", log=True)


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None
