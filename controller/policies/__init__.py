"""Cache policies of the pool: they turn events into decisions, and know nothing of switches or sockets.

A policy gets one event at a time, in order of time, and answers with decisions:

    policy = make_policy("reuse", capacity_blocks=300)
    for decision in policy.handle(event):
        ...                     # an Evict always comes before the Admit it makes room for

Events (`events.py`; keys are any hashable: 16-byte block keys live, ids in a replay):

    Miss(key, now_s, depth, chain_blocks, parent, times, home)   asked for, and not in the pool
    Hits(key, now_s, times)            a block in the pool was asked for, `times` times
    HomeLoad(home, now_s, wait_s, link_bit_s)  how long a fetch from a storage node waits now, and its link
    Lost(key, now_s)    the pool does not hold the block after all: an admission failed, a switch restarted
    Found(key, now_s)   the pool holds a block after all: an eviction failed, or it was read back
    Pin(key, now_s), Unpin(key, now_s) the block must not be evicted meanwhile
    Demoted(key, now_s)                a node says that the block will not be asked for soon

With a live switch, a digest of a hot miss is a Miss, and a polled direct counter that moved is a Hits. The
parent is a full key: the caller resolves a fingerprint, or passes None. A policy takes each decision as
carried out at once. What fails is reported with Lost or Found, so that both sides agree again; what succeeds
needs no event.

Decisions: Admit(key) and Evict(key, reuse_chance), where reuse_chance is the probability that the block is
asked for again (None: the policy cannot say). `eviction_action.py` turns it into drop, demote or stub.

The same events always give the same decisions (`eventlog.py` writes and reads them as JSON lines), so a live
run can be replayed.

To add a policy: CONTRIBUTING.md, "How to add".
"""

from controller.policies.base import Policy
from controller.policies.baseline import PolicyError
from controller.policies.events import (
    Admit,
    Decision,
    Demoted,
    Event,
    Evict,
    Found,
    Hits,
    HomeLoad,
    Key,
    Lost,
    Miss,
    Pin,
    Unpin,
)
from controller.policies.registry import OWN_POLICIES, POLICY_NAMES, make_policy

__all__ = [
    "OWN_POLICIES",
    "POLICY_NAMES",
    "Admit",
    "Decision",
    "Demoted",
    "Event",
    "Evict",
    "Found",
    "Hits",
    "HomeLoad",
    "Key",
    "Lost",
    "Miss",
    "Pin",
    "Policy",
    "PolicyError",
    "Unpin",
    "make_policy",
]
