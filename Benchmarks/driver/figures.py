# Copyright the Curlew authors.
# SPDX-License-Identifier: Apache-2.0
"""Computes figures from rounds: medians, ratios within a round, and lines to print."""

import statistics

GIB, MIB = 1 << 30, 1 << 20
# Ratios to the CPU time of clients other than the floor in the same round.
BESIDE = {"by-hand": "curlew", "by-foundation": "curlew+foundation", "by-reading": "curlew+reading",
          "by-saving": "curlew+saving"}


def middle(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def per_unit(workload, figures):
    """Returns the CPU time in µs per request or in s per GiB."""
    if workload.unit == "byte":
        return figures["cpu"] / (figures["bytes"] / GIB)
    return figures["cpu"] / figures["requests"] * 1e6


def summary(workload, client, rounds):
    """Returns medians over the rounds that were quiet for the client and the floor, or over all if no round was quiet."""
    both = [(one[client], one.get("floor"), one) for one in rounds if one.get(client)]
    if not both:
        return None
    quiet = [pair for pair in both if all(side is None or side["is_quiet"] for side in pair[:2])]
    used = quiet or both
    result = {"n": len(used), "is_quiet": bool(quiet)}
    if workload.unit not in ("request", "byte"):
        for name in ("milliseconds", "scaling", "one", "two", "c1", "c64"):
            result[name] = middle(own.get(name) for own, _, _ in used)
            result[f"{name}-ratio"] = middle(
                own[name] / floor[name] for own, floor, _ in used if floor and own.get(name) and floor.get(name))
        result["remark"] = used[0][0].get("remark")
        return result
    cpu = [per_unit(workload, own) for own, _, _ in used]
    result |= {"cpu": middle(cpu), "least": min(cpu), "most": max(cpu)}
    result["ratio"] = middle(per_unit(workload, own) / per_unit(workload, floor) for own, floor, _ in used)
    for name, other in BESIDE.items():
        result[name] = middle(per_unit(workload, own) / per_unit(workload, one[other])
                              for own, _, one in used if other != client and one.get(other))
    result["wall"] = middle(own["wall"] / floor["wall"] for own, floor, _ in used)
    result["share"] = middle(own["cpu"] / own["wall"] for own, _, _ in used)
    result["seconds"] = middle(own["wall"] for own, _, _ in used)
    result["rate"] = middle(
        (own["bytes"] / MIB if workload.unit == "byte" else own["requests"]) / own["wall"] for own, _, _ in used)
    result["rss"] = middle((own["rss_peak"] - own["rss_base"]) / 1024 for own, _, _ in used)
    result["flight"] = middle(
        (over_base(own) - over_base(floor)) / workload.concurrency for own, floor, _ in used)
    at_once = workload.own.get(client, {}).get("c", workload.concurrency)
    result["each"] = middle(over_base(own) / at_once for own, _, _ in used)
    result["switches"] = middle((own["voluntary"] + own["involuntary"]) / own["requests"] for own, _, _ in used)
    for name in ("p50", "p99", "connections"):
        result[name] = middle(own.get(name) for own, _, _ in used)
    return result


def over_base(figures):
    return figures["rss_peak"] - figures["rss_base"]


def number(value, digits=0):
    return "–" if value is None else f"{value:,.{digits}f}"


def line(workload, client, s):
    """Returns one line for the terminal."""
    start = f"  {client:18}"
    mark = "" if s["is_quiet"] else "  (not quiet)"
    if s.get("remark"):
        return start + s["remark"]
    if workload.unit == "cold-start":
        return f"{start}{s['milliseconds']:8.2f} ms CPU  ×{number(s['milliseconds-ratio'], 2)}{mark}"
    if workload.unit == "scaling":
        return f"{start}{s['one']:9,.0f}/s one, {s['two']:9,.0f}/s two sessions  ×{s['scaling']:.2f}{mark}"
    if workload.unit in ("instructions", "allocations"):
        return (f"{start}{s['c1']:10,.1f} a request at c=1 (×{number(s['c1-ratio'], 2)})"
                f"{s['c64']:10,.1f} at c=64 (×{number(s['c64-ratio'], 2)})")
    cpu = f"{s['cpu']:8.3f} s/GiB" if workload.unit == "byte" else f"{s['cpu']:8.2f} µs/req"
    rate = f"{s['rate']:8,.0f} MiB/s" if workload.unit == "byte" else f"{s['rate']:8,.0f} req/s"
    text = f"{start}{cpu} ×{s['ratio']:5.2f}  {rate}  RSS +{s['rss']:.1f} MiB"
    if workload.unit == "request":
        text += f"  p50 {s['p50']:,.0f} p99 {s['p99']:,.0f} µs  {s['switches']:.2f} switches"
    if workload.concurrency >= 1000:
        text += f"  {s['each']:.1f} KiB each  wall {s['seconds']:.2f} s"
    for name, other in BESIDE.items() if client.endswith(("+client", "+foundation", "+cache")) else ():
        if s[name]:
            text += f"  ×{s[name]:.3f} {other}"
    if s["connections"]:
        text += f"  {s['connections']:.0f} connections"
    return text + mark
