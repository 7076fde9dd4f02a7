"""Keys of a scenario for the machine that emulates it; only `simulator.emulated` knows them."""

from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, Within


@dataclass(frozen=True, slots=True, config=DECLARED)
class Machine:
    """Machine that emulates the scenario, in real seconds. By default its work takes no time."""

    pace: Annotated[float, Within(1e-6, 1e9)] = 1.0
    """Factor by which the emulation is faster than reality; flow control's fixed times are longer by this
    factor."""
    link_burst_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Time at a link's rate for which an idle link sends at once, as shapers do; 0: links are no shapers."""
    buffer_share: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Fragments that each batch adds to the backlog that a storage node reports, beyond its packets."""
    batch_fragments: Annotated[int, Within(1, 65_535)] = 1
    """Fragments that a storage node hands over at once, at most."""
    cores: Annotated[int, Within(0, 4096)] = 0
    """Cores that hosts and switches share; 0: their work takes no time."""
    slowdown: Annotated[float, Within(0.0, 100.0)] = 0.0
    """Mean share by which work on a core takes longer than the times below, at random."""
    live_puts: bool = False
    """Whether PUTs leave fragment by fragment, as those of hosts do (simulator.emulated.live_puts)."""
    node_report_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Time between two reports of a node to the conductor, beside one after each prefill
    (simulator.emulated.reported); 0: the conductor knows everything at once."""
    pool_report_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Time between two reports of a pool to the conductor."""
    timer_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Ticks of hosts' timers: a request begins late, and a prefill ends late, at the next tick."""
    switch_wake_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of a switch for each wake-up."""
    switch_packet_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of a switch for each fragment or request."""
    host_wake_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of a host for each wake-up."""
    rest_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Time constant with which a resting host becomes cold: by 1 - exp(-t / rest_s) after a rest of t
    (simulator.emulated.cpu); 0: never."""
    node_cold_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Extra CPU time of a cold node's first wake-up, in which it asks."""
    node_answer_cold_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Extra CPU time of a cold node's second wake-up, in which it is answered."""
    store_cold_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Extra CPU time of a cold storage node's first wake-up."""
    switch_cold_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Extra CPU time of a cold switch's first wake-up."""
    node_block_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of a node for each block of a request, before it asks for any."""
    node_fragment_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of a node for each fragment that it receives."""
    store_block_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of an answering host for each requested block, beside that for its fragments."""
    store_fragment_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of an answering host for each fragment that it sends or takes."""
    index_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of an index for a question, and of the node for its answer."""
