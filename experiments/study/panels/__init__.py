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
    made = [compared.rivals(done, nodes) for nodes in fan_ins(done)]
    made += _budgets(found)
    made += [deciding.settings(found)] if found.verdicts else []
    made += [deciding.space(done)] if SPACE in played else []
    made += [compared.gate(done, nodes) for nodes in places(done, "gate")]
    made += [compared.designs(done, nodes) for nodes in places(done, "designs")]
    made += [compared.codec(done, nodes) for nodes in places(done, "codec")]
    made += [compared.engine(done, nodes) for nodes in places(done, "engine")]
    made += [compared.decoders(done, nodes) for nodes in places(done, "decoders")]
    made += [compared.cold(done, nodes) for nodes in places(done, "cold")]
    made += [joining(done, place) for place in places(done, "joining")]
    made += [compared.hour(done, nodes) for nodes in places(done, HOUR)]
    made += deciding.tornado(done) if "tornado" in played else []
    made += [deciding.ledger(done)] if HOUR in played else []
    made += [swept.systems(done)] if "shape" in played else []
    made += [swept.axis(axis, done) for axis in AXES if axis.field in played]
    made += [swept.ablation(done)] if "ablation" in played else []
    return made + ([swept.control(done)] if "control" in played else [])


def _budgets(found: Found) -> list[Panel]:
    """Return the panels of budgets: one for the purchases at all fan-ins, and one for the map."""
    nodes = fan_ins(found.done)
    bought = [purchases(found.done, count) for count in nodes]
    mapped = [one.bought for one in found.verdicts]
    made = []
    if bought and all(any(one.system == "recompute" for one in place) for place in bought):
        made.append(budgets(bought, f"{', '.join(map(str, nodes))} nodes", "budgets"))
    if mapped:
        made.append(budgets(mapped, f"{len(mapped)} settings of the map", "map_budgets"))
    return made
