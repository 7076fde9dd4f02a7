"""Of a scenario: the machine that an emulation of it runs on, known to the layer in `emulated/` alone."""

from typing import Annotated

from pydantic.dataclasses import dataclass

from commands.declarations import DECLARED, Within


@dataclass(frozen=True, slots=True, config=DECLARED)
class Machine:
    """What an emulation of the scenario runs on, in real seconds. By default nothing of it takes any time."""

    pace: Annotated[float, Within(1e-6, 1e9)] = 1.0
    """The emulation is so much faster than reality: flow control's fixed times are so much longer here."""
    link_burst_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Links are shapers: what an idle one lets through at once, as time at its rate."""
    buffer_share: Annotated[float, Within(0.0, 1e3)] = 0.0
    """What a storage node thinks waits beyond its packets, for each batch that it sends, in fragments."""
    batch_fragments: Annotated[int, Within(1, 65_535)] = 1
    """Fragments that a storage node hands over at once, at most."""
    cores: Annotated[int, Within(0, 4096)] = 0
    """That hosts and switches share; 0: these take no time."""
    slowdown: Annotated[float, Within(0.0, 100.0)] = 0.0
    """Mean share by which work on a core takes longer than the times below, by chance."""
    live_puts: bool = False
    """PUTs leave fragment by fragment, as those of hosts do (simulator.emulated.live_puts)."""
    node_report_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """The conductor knows of nodes and pools what they last said (simulator.emulated.reported):
    nodes every so often and when a prefill has ended, pools every `pool_report_s`; 0: everything at once."""
    pool_report_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """The same of pools."""
    timer_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """Hosts wait for whole ticks of so long: a request begins late, and a prefill ends late."""
    switch_wake_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of a switch whenever something comes."""
    switch_packet_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of a switch for each fragment or request."""
    host_wake_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of a host whenever something comes."""
    rest_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """A host that rests for t becomes cold by 1 - exp(-t / rest_s) (simulator.emulated.cpu); 0:
    never."""
    node_cold_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time that a cold node's first wake-up takes longer: it asks."""
    node_answer_cold_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """The same of its second: it is answered."""
    store_cold_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """The same of a cold storage node's first wake-up."""
    switch_cold_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """The same of a cold switch's first wake-up."""
    node_block_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of a node for each block of a request before it asks for any."""
    node_fragment_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of a node for each fragment that it gets."""
    store_block_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of who answers for each block that it is asked for, besides its fragments."""
    store_fragment_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of who answers for each fragment that it sends, or takes."""
    index_s: Annotated[float, Within(0.0, 1e3)] = 0.0
    """CPU time of an index for a question, and of the node for its answer."""
