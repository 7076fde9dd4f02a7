"""The panels of the report, in reading order."""

from __future__ import annotations

from experiments.study.hours import HOUR
from experiments.study.panels import compared, deciding, swept
from experiments.study.panels.budgets import budgets
from experiments.study.panels.joining import joining
from experiments.study.panels.panel import Found, Panel, places
from experiments.study.plan import AXES
from experiments.study.rivals import fan_ins, purchases
from experiments.study.space import SPACE


def panels(found: Found) -> list[Panel]:
    """Return the panels whose sweeps were simulated, in reading order."""
    done = found.done
    played = {point.sweep for point, _ in done}
    shown_panels = [compared.rivals(done, nodes) for nodes in fan_ins(done)]
    shown_panels += _budgets(found)
    shown_panels += [deciding.settings(found)] if found.verdicts else []
    shown_panels += [deciding.space(done)] if SPACE in played else []
    shown_panels += [compared.gate(done, nodes) for nodes in places(done, "gate")]
    shown_panels += [compared.designs(done, nodes) for nodes in places(done, "designs")]
    shown_panels += [compared.codec(done, nodes) for nodes in places(done, "codec")]
    shown_panels += [compared.engine(done, nodes) for nodes in places(done, "engine")]
    shown_panels += [compared.decoders(done, nodes) for nodes in places(done, "decoders")]
    shown_panels += [compared.cold(done, nodes) for nodes in places(done, "cold")]
    shown_panels += [joining(done, place) for place in places(done, "joining")]
    shown_panels += [compared.hour(done, nodes) for nodes in places(done, HOUR)]
    shown_panels += deciding.tornado(done) if "tornado" in played else []
    shown_panels += [deciding.ledger(done)] if HOUR in played else []
    shown_panels += [swept.systems(done)] if "shape" in played else []
    shown_panels += [swept.axis(axis, done) for axis in AXES if axis.field in played]
    shown_panels += [swept.ablation(done)] if "ablation" in played else []
    return shown_panels + ([swept.control(done)] if "control" in played else [])


def _budgets(found: Found) -> list[Panel]:
    """Return the panels of budgets: one for the purchases at all fan-ins, and one for the map."""
    nodes = fan_ins(found.done)
    bought = [purchases(found.done, count) for count in nodes]
    mapped = [one.bought for one in found.verdicts]
    shown_panels = []
    if bought and all(any(one.system == "recompute" for one in place) for place in bought):
        shown_panels.append(budgets(bought, f"{', '.join(map(str, nodes))} nodes", "budgets"))
    if mapped:
        shown_panels.append(budgets(mapped, f"{len(mapped)} settings of the map", "map_budgets"))
    return shown_panels
