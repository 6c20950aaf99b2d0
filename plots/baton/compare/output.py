# SPDX-License-Identifier: Apache-2.0
"""Findings as text for a terminal, as Markdown for a pull request, and as JSON."""

import math
import statistics

from baton.compare import verdicts

COLUMNS = 100
MARKS = {verdicts.SLOWER: ":red_circle:", verdicts.WRONG: ":red_circle:", verdicts.MISSING: ":red_circle:",
         verdicts.CANNOT_TELL: ":white_circle:", verdicts.FASTER: ":green_circle:"}

# Parts of names, and what the benches' tables call them; where a name is too long for its line.
SHORTER = {"ranks:": "P=", "kv_heads:": "Hkv=", "heads:": "H=", "tokens:": "T=", "blocks:": "K=", "forward": "fwd",
           "reverse": "rev"}


def text(findings, header):
    """The lines for a terminal: the header, what all cases share, one line a case, what changed, and the family."""
    shared, names = short_names([finding.case for finding in findings])
    lines = [*header, *_wrapped("# all cases: ", shared)]
    lines.append(_line("verdict", ("B / A", "95 % interval", "A us", "B us", "launches", "needs"), "case"))
    for finding in findings:
        lines.append(_line(finding.verdict, _cells(finding), names[finding.case]))
        lines += [f"            {line}" for line in _why(finding)]
    return "\n".join(lines + family(findings)) + "\n"


def not_compared(a, b, names):
    """One line on the simulated cases that stand on unlike calibrations, with the bound of the one that moved most."""
    if not names:
        return []
    bounds = [(a.cases[name].mean_of("bound_seconds"), b.cases[name].mean_of("bound_seconds")) for name in names]
    one, other = max((pair for pair in bounds if all(pair)), default=(1, 1), key=lambda pair: abs(math.log(pair[1] / pair[0])))
    moved = f" (bound {one * 1e6:.4g} -> {other * 1e6:.4g} us)" if one != other else ""
    return [f"# not compared: {len(names)} simulated row{'s' * (len(names) > 1)}, on unlike calibrations{moved}"]


def short_names(cases):
    """Returns the parts of their names that all cases share, and {case: what sets it apart}."""
    parts = {case: case.split("/") for case in cases}
    names = list(parts.values())
    shared = [part for part in names[0][1:] if all(part in other for other in names)] if names else []
    room = COLUMNS - len(_line("", [""] * 6, ""))
    short = {case: "/".join(_distinctive(own, names)) for case, own in parts.items()}
    if any(len(name) > room for name in short.values()):
        short = {case: _shorter(name) for case, name in short.items()}
    return shared, short


def _distinctive(own, names):
    """The parts of a name that set it apart: each one that not all those share which the parts before leave.

    What the others have beyond this name stands in their own parts, so no two of them become equal.
    """
    kept, others = own[:1], [other for other in names if other[0] == own[0]]
    for part in own[1:]:
        same = [other for other in others if part in other]
        kept += [part] * (len(same) < len(others))
        others = same
    return kept


def _shorter(name):
    """The name in shorter words. It is never cut: cut names look alike."""
    for long, short in SHORTER.items():
        name = name.replace(long, short)
    return name


def _wrapped(start, parts):
    """Comment lines with these parts of names."""
    lines = []
    for part in parts:
        if not lines or len(lines[-1]) + 1 + len(part) > COLUMNS:
            lines.append(start if not lines else "#   ")
        lines[-1] += part if lines[-1] in (start, "#   ") else f"/{part}"
    return lines


def _line(verdict, cells, name):
    return "{:11} {:>6} {:>15} {:>8} {:>8} {:>8} {:>5}  ".format(verdict, *cells) + name


def _cells(finding):
    """The ratio, its interval, the medians of both sides, the launches, and how many it needs, as texts."""
    ratio = f"{math.exp(finding.estimate.log_ratio):.3f}" if finding.estimate else "-"
    interval = "-"
    if finding.interval and min(finding.launches) >= 2:
        interval = "[{:.3f},{:.3f}]".format(*map(math.exp, finding.interval))
    launches = "-" if not any(finding.launches) else "{}+{}".format(*finding.launches)
    if finding.estimate and finding.estimate.paired and finding.estimate.error:
        launches = f"{finding.launches[0]} pairs"
    return ratio, interval, *map(_microseconds, finding.seconds), launches, _needs(finding)


def _microseconds(seconds):
    return "-" if seconds is None else f"{seconds * 1e6:.4g}" if seconds < 0.01 else f"{seconds * 1e6:.0f}"


def _needs(finding):
    """How many launches of each side would tell, where these cannot."""
    if finding.verdict != verdicts.CANNOT_TELL:
        return "-"
    return str(finding.needs) if finding.needs else f">{verdicts.MOST_LAUNCHES}"


def _why(finding):
    """What stands below a row: why it is wrong, missing or new, and what else changed."""
    return [line[:COLUMNS - 12] for line in (finding.note, "; ".join(finding.changes)) if line]


def family(findings):
    """The last lines: how many of each verdict, the mean ratio, and the smallest change that would have shown."""
    counts = ", ".join(f"{count} {verdict}" for verdict in verdicts.ORDER
                       if (count := sum(finding.verdict == verdict for finding in findings)))
    lines = [f"# {len(findings)} cases: {counts}"]
    estimates = [finding.estimate for finding in findings if finding.estimate and
                 math.isfinite(finding.estimate.log_ratio)]
    if estimates:
        mean = math.exp(statistics.fmean(estimate.log_ratio for estimate in estimates))
        lines[0] += f"; geometric mean of B / A {mean:.3f}"
    halves = [(finding.interval[1] - finding.interval[0]) / 2 for finding in findings
              if finding.estimate and finding.estimate.error and min(finding.launches) >= 2]
    if halves:
        lines.append(f"# half a 95 % interval: {_percent(statistics.median(halves))} in the median case, "
                     f"{_percent(max(halves))} in the worst")
    if verdicts.exit_code(findings) == verdicts.EXIT_CANNOT_TELL:
        lines.append("# exit code 6: nothing is worse, but not every case could be judged; `needs` says how many launches would do")
    return lines


def _percent(log_ratio):
    return f"{100 * math.expm1(min(log_ratio, 5)):.1f} %"


def markdown(findings, header):
    """A comment for a pull request: what is worth a look first, the rest folded."""
    shared, names = short_names([finding.case for finding in findings])
    quiet = [finding for finding in findings if finding.verdict == verdicts.SAME]
    loud = [finding for finding in findings if finding.verdict != verdicts.SAME]
    lines = [line.lstrip("# ") for line in header] + ([f"All cases: `{'/'.join(shared)}`"] if shared else [])
    lines += ["", *[line.lstrip("# ") + "  " for line in family(findings)], ""]
    lines += _table(loud, names) if loud else ["All cases are the same."]
    if quiet:
        lines += ["", "<details><summary>the same</summary>", "", *_table(quiet, names), "", "</details>"]
    return "\n".join(lines) + "\n"


def _table(findings, names):
    rows = ["| verdict | B / A | 95 % interval | A us | B us | launches | needs | case | why |",
            "| --- " * 9 + "|"]
    for finding in findings:
        verdict = f"{MARKS.get(finding.verdict, '')} {finding.verdict}".strip()
        why = "; ".join(_why(finding)).replace("|", "\\|")
        rows.append("| " + " | ".join([verdict, *_cells(finding), f"`{names[finding.case]}`", why]) + " |")
    return rows


def as_json(findings, conditions, margin):
    """All that is known, for programs."""
    return {"margin": margin, "across": conditions, "exit_code": verdicts.exit_code(findings),
            "cases": [_entry(finding) for finding in findings]}


def _entry(finding):
    ratio = interval = None
    if finding.estimate and math.isfinite(finding.estimate.log_ratio):
        ratio, interval = math.exp(finding.estimate.log_ratio), [math.exp(end) for end in finding.interval]
    return {"case": finding.case, "verdict": finding.verdict, "ratio": ratio, "ratio_ci95": interval,
            "paired": bool(finding.estimate and finding.estimate.paired),
            "median_seconds": list(finding.seconds), "launches": list(finding.launches),
            "launches_needed": finding.needs, "note": finding.note, "changes": finding.changes}
