"""What all charts are made of."""

ONE_MACHINE = (
    "The paper has a host for each of publisher, broker and consumer, with eight cores and 1 Gbit/s Ethernet or InfiniBand. "
    "Here all share the cores of one machine and loopback, so whoever needs more CPU time slows the others down too."
)
NOT_MEASURED = "The paper does not measure it."


def chart(name, title, x, y, series, says, differs, marks=()):
    """`x` and `y` are axes (`axis`), `series` a list of (name, [(x, y), …]), where a point of several runs may be (x, mean, lowest,
    highest). Points without a value are left out. `marks` are what happened at an x: (x, kind), of the kinds in page.css."""
    kept = []
    for label, points in series:
        found = [list(point) for point in points if None not in point[:2]]
        if found:
            kept.append({"name": label, "points": found})
    whole = {"name": name, "title": title, "x": x, "y": y, "series": kept, "says": says, "differs": differs}
    return whole | {"marks": [{"x": at, "kind": kind} for at, kind in marks]} if kept else None


def axis(label, log=False, categories=None):
    return {"label": label, "log": log, "categories": categories}


def size_axis():
    return axis("bytes of a message", log=True)


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None
