"""Whether LMDB can work on a data file: a walk through its pages before it is opened.

LMDB trusts what its pages say of themselves. After a flipped bit or a sector of zeros in one of them it reads
where there is nothing, or stops the process, and does so again at each start. So all that it follows is
looked at first, as it lies in the file (LMDB 0.9, 64 bits, the machine's byte order): the two meta pages, the
trees of records and of free pages, and the headers of overflow pages. What is in the records is not read:
each has a checksum of its own.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Collection
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from hostlib.protocol.errors import HostlibError

_META = struct.Struct("=IIQQ")
"""Magic number, version, address, bytes of the map."""
_TREE = struct.Struct("=IHHQQQQQ")
"""Page size (in the first), flags, depth; pages by kind; entries; root."""
_LAST = struct.Struct("=QQ")
"""The last page, and the number of the transaction."""
_PAGE = struct.Struct("=QHHHH")
"""Number, padding, flags, and where the free room begins and ends."""
_OVERFLOW = struct.Struct("=QHHI")
_NODE = struct.Struct("=HHHH")
"""Header of a node of LMDB. In a record: bytes (twice 16 bits), flags, bytes of the key. In a branch: the
page's number in the first three."""
_NUMBER = struct.Struct("=Q")
_META_AT, _FREE_AT, _MAIN_AT, _LAST_AT = 16, 40, 88, 136
_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_BRANCH, _LEAF, _OVERFLOW_PAGE, _META_PAGE = 1, 2, 4, 8
_BIG: Final = 1
_INTEGER_KEYS: Final = 8
_NO_PAGE: Final = (1 << 64) - 1
_MOST_DEPTH: Final = 32
META_PAGES: Final = 2


class DamagedError(HostlibError):
    """The file is not what LMDB would have written."""


class _Tree(NamedTuple):
    flags: int
    depth: int
    root: int


class _Meta(NamedTuple):
    page_bytes: int
    free: _Tree
    main: _Tree
    last_page: int
    transaction: int


def check(path: Path, key_lengths: Collection[int]) -> None:
    """Raise DamagedError that says what is wrong with a data file, or OSError.

    The keys of its records have one of `key_lengths` bytes.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            return  # LMDB makes a new one
        _Check(file.fileno(), size).all(key_lengths)


class _Check:
    def __init__(self, fd: int, size: int) -> None:
        self._fd, self._size = fd, size
        self._meta = self._newest_meta()
        self._seen = bytearray(min(self._meta.last_page + 1, size // self._meta.page_bytes + 1))
        """Of pages: what is 1 is in use."""

    def all(self, key_lengths: Collection[int]) -> None:
        """See `check`."""
        meta = self._meta
        self._seen[:META_PAGES] = b"\1" * META_PAGES
        free: list[bytes] = []
        self._walk(meta.free, _INTEGER_KEYS, (_NUMBER.size,), free.append)
        self._walk(meta.main, 0, key_lengths, None)
        for pages in free:
            self._check_free(pages)

    def _newest_meta(self) -> _Meta:
        try:
            page_bytes = _TREE.unpack(self._read(_FREE_AT, _TREE.size))[0]
            if page_bytes not in (1 << bit for bit in range(9, 17)):
                raise DamagedError(f"meta page 0 says that pages have {page_bytes} bytes")
            one, other = (self._read_meta(at, page_bytes) for at in range(META_PAGES))
        except struct.error:
            raise DamagedError(f"a file of {self._size} bytes") from None
        newest, before = (one, other) if one.transaction >= other.transaction else (other, one)
        is_new = newest.transaction == before.transaction == 0
        if not is_new and (newest.transaction - before.transaction != 1 or one.transaction % 2):
            raise DamagedError(f"meta pages of transactions {one.transaction} and {other.transaction}")
        return newest

    def _read_meta(self, number: int, page_bytes: int) -> _Meta:
        page = self._read(number * page_bytes, _LAST_AT + _LAST.size)
        own, _, flags, *_ = _PAGE.unpack_from(page)
        magic, version, _, _ = _META.unpack_from(page, _META_AT)
        if (own, flags, magic, version) != (number, _META_PAGE, _MAGIC, _VERSION):
            raise DamagedError(f"page {number} is no meta page")
        size, free_flags, free_depth, *_, free_root = _TREE.unpack_from(page, _FREE_AT)
        _, main_flags, main_depth, *_, main_root = _TREE.unpack_from(page, _MAIN_AT)
        last, transaction = _LAST.unpack_from(page, _LAST_AT)
        free = _Tree(free_flags, free_depth, free_root)
        main = _Tree(main_flags, main_depth, main_root)
        if size != page_bytes or last * page_bytes > 2 * self._size + (1 << 20):
            raise DamagedError(f"meta page {number}: pages of {size} bytes, the last of them {last}")
        return _Meta(size, free, main, last, transaction)

    def _walk(
        self, tree: _Tree, flags: int, key_lengths: Collection[int], take: Callable[[bytes], None] | None
    ) -> None:
        if tree.flags != flags:
            raise DamagedError(f"a tree with flags {tree.flags}")
        if (tree.root == _NO_PAGE) != (tree.depth == 0) or tree.depth > _MOST_DEPTH:
            raise DamagedError(f"a tree of depth {tree.depth} with root {tree.root}")
        by_number = bool(flags & _INTEGER_KEYS)
        waiting: list[tuple[int, int, bytes, bytes | None]] = []
        if tree.depth:
            waiting.append((tree.root, 1, b"", None))
        while waiting:
            number, depth, low, high = waiting.pop()
            kind = _LEAF if depth == tree.depth else _BRANCH
            page, nodes = self._page(number, kind)
            keys = [self._key(number, page, at, key_lengths, not index and kind == _BRANCH)
                    for index, at in enumerate(nodes)]  # fmt: skip
            if by_number:  # transactions, none of which is to come
                keys = [key[::-1] for key in keys]
                if int.from_bytes(keys[-1], "big") > self._meta.transaction:
                    raise DamagedError(f"page {number}: pages that were freed by a transaction to come")
            keys[0] = max(keys[0], low) if kind == _BRANCH else keys[0]
            ordered = all(one < two for one, two in pairwise(keys))
            if not ordered or keys[0] < low or (high is not None and keys[-1] >= high):
                raise DamagedError(f"page {number}: keys out of order")
            if kind == _BRANCH:
                ends = [*keys[1:], high]
                for at, key, end in zip(nodes, keys, ends, strict=True):
                    low_bits, middle, high_bits, _ = _NODE.unpack_from(page, at)
                    child = low_bits | middle << 16 | high_bits << 32
                    waiting.append((child, depth + 1, key, end))
            else:
                for at in nodes:
                    self._record(number, page, at, take)

    def _page(self, number: int, kind: int) -> tuple[bytes, list[int]]:
        """Return a page of a tree, and where its nodes are."""
        self._use(number)
        size = self._meta.page_bytes
        page = self._read(number * size, size)
        own, _, flags, lower, upper = _PAGE.unpack_from(page)
        if own != number or flags != kind:
            raise DamagedError(f"page {number} says to be {own}, with flags {flags:#x}")
        if lower % 2 or not _PAGE.size < lower <= upper <= size:
            raise DamagedError(f"page {number}: free room from {lower} to {upper}")
        nodes = [at for (at,) in struct.iter_unpack("=H", page[_PAGE.size : lower])]
        if min(nodes) < upper or max(nodes) > size - _NODE.size or any(at % 2 for at in nodes):
            raise DamagedError(f"page {number}: nodes beyond its bounds")
        if kind == _BRANCH and len(nodes) < 2:
            raise DamagedError(f"page {number}: a branch with {len(nodes)} child")
        return page, nodes

    def _key(
        self, number: int, page: bytes, at: int, key_lengths: Collection[int], may_be_empty: bool
    ) -> bytes:
        length = _NODE.unpack_from(page, at)[3]
        if length not in key_lengths and not (may_be_empty and not length):
            raise DamagedError(f"page {number}: a key of {length} bytes")
        key = page[at + _NODE.size :][:length]
        if len(key) != length:
            raise DamagedError(f"page {number}: a key beyond its end")
        return key

    def _record(self, number: int, page: bytes, at: int, take: Callable[[bytes], None] | None) -> None:
        low, high, flags, key_bytes = _NODE.unpack_from(page, at)
        length = low | high << 16
        begin = at + _NODE.size + key_bytes
        end = begin + (_NUMBER.size if flags == _BIG else length)
        if flags not in (0, _BIG) or end > len(page):
            raise DamagedError(f"page {number}: a record of {length} bytes with flags {flags:#x}")
        if flags != _BIG:
            if take is not None:
                take(page[begin:end])
            return
        (first,) = _NUMBER.unpack_from(page, begin)
        size = self._meta.page_bytes
        pages = -(-(_PAGE.size + length) // size)
        self._use(first, pages)
        own, _, kind, said = _OVERFLOW.unpack(self._read(first * size, _OVERFLOW.size))
        if (own, kind, said) != (first, _OVERFLOW_PAGE, pages):
            raise DamagedError(f"page {first} is not the first of {pages} with a record")
        if take is not None:
            take(self._read(first * size + _PAGE.size, length))

    def _check_free(self, data: bytes) -> None:
        if len(data) % _NUMBER.size or not data:
            raise DamagedError(f"a list of free pages of {len(data)} bytes")
        count, *pages = (number for (number,) in _NUMBER.iter_unpack(data))
        if count > len(pages):
            raise DamagedError(f"a list of {count} free pages in {len(data)} bytes")
        for before, number in zip([_NO_PAGE, *pages[:count]], pages[:count], strict=False):
            if number >= before or not META_PAGES <= number <= self._meta.last_page:
                raise DamagedError(f"free page {number} behind {before}")
            if number < len(self._seen):
                self._use(number)

    def _use(self, first: int, count: int = 1) -> None:
        if first < META_PAGES or first + count > len(self._seen) or any(self._seen[first : first + count]):
            raise DamagedError(f"pages {first} to {first + count - 1} are not there, or used twice")
        self._seen[first : first + count] = b"\1" * count

    def _read(self, at: int, length: int) -> bytes:
        data = os.pread(self._fd, length, at)
        if len(data) < length:
            raise DamagedError(f"the file ends before byte {at + length}")
        return data
