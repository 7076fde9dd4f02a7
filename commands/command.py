"""Behaviour that all commands share: bad input, interrupts, progress and verbosity.

A command's `main` calls `run_command` with a function that reads its options and one that does the work:
    exit code 0 and 1   the command's own
    exit code 2         bad input, or a part failed: one message on stderr, no traceback
    exit code 130       interrupted (SIGINT, SIGTERM, SIGHUP); all that was started has ended
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from commands.errors import ExperimentError
from commands.interrupt import raise_on_signals
from commands.one_at_a_time import one_at_a_time
from commands.results_folder import results_folder
from commands.verbosity import QUIET, VERBOSE, verbosity
from controller.errors import ControllerError
from controller.policies import PolicyError
from topologies.errors import EngineError, TopologyError
from topologies.machine_check import complete_path
from workload.compression import CompressionError
from workload.cost import CostError
from workload.generate import GenerateError
from workload.scale import ScaleError
from workload.trace import TraceError

BAD_INPUT = (
    ExperimentError,
    TraceError,
    GenerateError,
    ScaleError,
    CostError,
    CompressionError,
    TopologyError,
    EngineError,
    PolicyError,
    ControllerError,
)
REFUSED = {
    errno.ENOSPC: ": make room, or set TMPDIR and RESULTS to another disk",
    errno.EDQUOT: ": make room, or set TMPDIR and RESULTS to another disk",
    errno.EROFS: ": set RESULTS to a folder that can be written to",
    errno.EMFILE: ": raise the limit of open files (ulimit -n)",
    errno.ENOMEM: ": end other programs, or use fewer HOSTS",
}
"""Advice by errno for a machine that has run out of something; such errors may name no file."""
OPTIONAL_PACKAGES = (
    "libcachesim",
    "constriction",
    "zstandard",
    "matplotlib",
    "plotly",
    "dask",
    "distributed",
)
"""Packages that only some experiments use (pyproject.toml, `experiments`)."""
INTERRUPTED = "interrupted; everything that was started has ended"

LIVE_REFRESHES_PER_S = 2
FILE_COLUMNS = 200
"""Columns of a file or pipe, which has no width: rich would take 80 and cut tables."""
FILE_EVERY_S = 10.0
"""Seconds between two lines of progress in a file or pipe."""

Options = TypeVar("Options")


class Screen:
    """Output of a command: results always, progress unless it is quiet."""

    def __init__(self, level: int = 0) -> None:
        """Open the output. `level` is QUIET, 0, VERBOSE or more."""
        self.level = level
        self.console = Console(highlight=False)
        if not self.console.is_terminal and "COLUMNS" not in os.environ:
            self.console.width = FILE_COLUMNS
        self._errors = Console(stderr=True, highlight=False)

    @property
    def quiet(self) -> bool:
        """Return whether only results, warnings and errors are wanted."""
        return self.level <= QUIET

    def show(self, what: RenderableType = "") -> None:
        """Print a result."""
        self.console.print(what, soft_wrap=isinstance(what, str))

    def say(self, text: str) -> None:
        """Print what is being done, or where results are, unless quiet."""
        if not self.quiet:
            self.console.print(text, soft_wrap=True)

    def detail(self, text: str) -> None:
        """Print a detail, if verbose."""
        if self.level >= VERBOSE:
            self.console.print(text, soft_wrap=True)

    def warn(self, text: str, what: str = "warning") -> None:
        """Print a warning for readers of the results."""
        self.console.print(f"[yellow]{what}:[/] {text}", soft_wrap=True)

    def error(self, text: str) -> None:
        """Print to stderr why the command ends."""
        self._errors.print("[bold red]error:[/] ", end="")
        self._errors.print(text, soft_wrap=True, markup=False)

    @property
    def can_live(self) -> bool:
        """Return whether there is a terminal on which a line can be drawn again."""
        return self.console.is_terminal and not self.console.is_dumb_terminal and not self.quiet

    def progress(self, *more: ProgressColumn, below: RenderableType | None = None) -> Progress:
        """Return progress bars with count, time and `more` columns; `below` is drawn under them."""
        return _ProgressAbove(
            below,
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            *more,
            console=self.console,
            disable=self.quiet,
            refresh_per_second=10 if below is None else LIVE_REFRESHES_PER_S,
        )

    @contextmanager
    def status(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show a line that says what is being done until the block ends; call the yielded function to change
        it.
        """
        if self.quiet:
            yield lambda _: None
            return
        with self.console.status(text) as status:
            yield status.update


class _ProgressAbove(Progress):
    """Progress bars with something below them; a file gets a line of progress now and then."""

    def __init__(self, below: RenderableType | None, *columns: ProgressColumn, **options: Any) -> None:
        self._below = below
        super().__init__(*columns, **options)
        self._printed_s = self.get_time()

    def update(self, task_id: TaskID, *arguments: Any, **fields: Any) -> None:
        """Update a task, see Progress."""
        super().update(task_id, *arguments, **fields)
        self._print_line(task_id)

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        """Advance a task, see Progress."""
        super().advance(task_id, advance)
        self._print_line(task_id)

    def _print_line(self, task_id: TaskID) -> None:
        now_s = self.get_time()
        if self.console.is_terminal or self.disable or now_s - self._printed_s < FILE_EVERY_S:
            return
        self._printed_s = now_s
        task = self._tasks[task_id]
        total = "" if task.total is None else f" of {task.total:,.0f}"
        took = f"{task.elapsed or 0:,.0f} s"
        self.console.print(f"{task.description}: {task.completed:,.0f}{total}, {took}", soft_wrap=True)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield what is drawn at each refresh."""
        yield from super().get_renderables()
        if self._below is not None:
            yield self._below


def run_command(
    arguments: Sequence[str],
    parse: Callable[[Sequence[str]], Options],
    work: Callable[[Screen, Options], int],
    interrupted: str = INTERRUPTED,
) -> int:
    """Return the exit code: `work`'s, 2 for bad input, 130 after an interrupt.

    Options with a folder of results (`results`) hold it: a second command waits for the first.
    """
    raise_on_signals()
    complete_path()
    screen = Screen()
    try:
        screen.level = verbosity(arguments)
        options = parse(arguments)
        results = getattr(options, "results", None)
        with ExitStack() as held:
            if isinstance(results, Path):
                held.enter_context(results_folder(results))
                held.enter_context(one_at_a_time(results, screen.warn))
            return work(screen, options)
    except BAD_INPUT as error:
        screen.error(str(error))
    except OSError as error:
        if error.filename is None and error.errno not in REFUSED:
            raise
        screen.error(f"{error.filename or 'a file of this command'}: {error.strerror}{_advice(error)}")
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL_PACKAGES:
            raise
        screen.error(
            f"this needs the Python package {error.name}, which is not installed: make setup-all, "
            "or pip install 'weir[experiments]'"
        )
    except KeyboardInterrupt:
        screen.show(interrupted)
        return 130
    return 2


def _advice(error: OSError) -> str:
    return REFUSED.get(error.errno or 0, "")
