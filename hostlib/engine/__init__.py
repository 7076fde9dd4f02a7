"""The pool for inference engines: keys, handshake, longest prefix, load and store, blocking or in asyncio.

Needs the standard library only, so that it goes into any engine's environment (docs/engines.md).
"""

from hostlib.engine.blocking import BlockingObjects, BlockingPool, open_objects, open_pool, open_pools
from hostlib.engine.config import PoolConfig
from hostlib.engine.objects import Item, ObjectPool, PoolStats
from hostlib.engine.pool import KvPool
from hostlib.engine.space import KeyChain, KvSpace

__all__ = [
    "BlockingObjects",
    "BlockingPool",
    "Item",
    "KeyChain",
    "KvPool",
    "KvSpace",
    "ObjectPool",
    "PoolConfig",
    "PoolStats",
    "open_objects",
    "open_pool",
    "open_pools",
]
