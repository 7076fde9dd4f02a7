"""make blocks: measure codecs and chunk reuse on the KV of a real transformer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from commands.command import Screen, run_command
from emulator.result import ROOT, revision
from experiments.blocks import record, report
from experiments.blocks.model.corpus import Corpus, read_corpus
from experiments.blocks.model.load import Transformer, load_transformer
from experiments.blocks.options import BlocksOptions, parse_options
from experiments.blocks.study import Findings, run_study, steps
from workload.compression import RECORD


def main(arguments: Sequence[str]) -> int:
    """Run the experiment; returns its exit code.

    It is 0 for success, 1 if the model does not count or the default codec falls short, and 2 for bad input.
    """
    return run_command(arguments, parse_options, _work)


def _work(screen: Screen, options: BlocksOptions) -> int:
    corpus = read_corpus()
    folder = options.model or _own_model(screen, corpus)
    transformer = load_transformer(folder)
    if options.record:
        return _record(screen, options, transformer, corpus)
    findings = _study(screen, options, transformer, corpus)
    about = {
        "model": transformer.layout.model,
        "corpus": corpus.digest,
        "samples": options.samples,
        "seed": options.seed,
        "seeds": options.seeds,
        "revision": revision(),
    }
    report.write_summary(options.results / "summary.json", about, findings)
    page = options.results / "report.html"
    report.write_page(page, transformer.name, about | {"engine": "transformers"}, findings)
    screen.show(report.codec_table(findings))
    if findings.more:
        screen.show(report.interval_table(findings))
    screen.show(report.blend_table(findings))
    sensitivity = findings.sensitivity
    screen.show(
        f"The model uses its context: perplexity {sensitivity.perplexity:.2f}, with shuffled KV "
        f"{sensitivity.shuffled_perplexity:.2f}; recall {sensitivity.recall:.0%}, with KV of chunks by "
        f"themselves {sensitivity.foreign_recall:.0%}"
    )
    screen.say(f"Written to {options.results / 'summary.json'}; to look at: {page}")
    for shortfall in findings.shortfalls:
        screen.warn(shortfall, "not as it should be")
    return 1 if findings.shortfalls else 0


def _study(screen: Screen, options: BlocksOptions, transformer: Transformer, corpus: Corpus) -> Findings:
    with screen.progress() as progress:
        task = progress.add_task("the model's own cache", total=steps(options.seeds))

        def show(what: str) -> None:
            progress.update(task, description=what, advance=1)

        return run_study(transformer, corpus, options.samples, options.seed, options.seeds, show)


def _record(screen: Screen, options: BlocksOptions, transformer: Transformer, corpus: Corpus) -> int:
    about = {"model": transformer.name, "corpus": corpus.digest, "revision": revision()}
    with screen.progress() as progress:
        task = progress.add_task("coding blocks", total=record.steps())

        def show(what: str) -> None:
            progress.update(task, description=what, advance=1)

        new_record = record.make_record(transformer, corpus, options.samples, options.seed, about, show)
    record.write_record(RECORD, new_record)
    screen.say(f"Recorded in {RECORD}: {options.samples} blocks by each codec and level")
    return 0


def _own_model(screen: Screen, corpus: Corpus) -> Path:
    """Return the folder of the small model; it is trained first if it is not there.

    The folder's name depends on the training text and on the sources named in `_RECIPE`.
    """
    recipe = b"".join((Path(__file__).parent / "model" / name).read_bytes() for name in _RECIPE)
    digest = blake2b(recipe + corpus.digest.encode(), digest_size=6).hexdigest()
    folder = ROOT / "build" / "blocks" / f"llama-gqa-{digest}"
    if folder.is_dir():
        return folder
    from experiments.blocks.model.train import train

    folder.parent.mkdir(parents=True, exist_ok=True)
    with screen.progress() as progress:
        task = progress.add_task("training the model, once", total=None)

        def show(done: int, total: int, how: str) -> None:
            progress.update(task, description=f"training the model, once: {how}", completed=done, total=total)

        train(folder, corpus, show)
    return folder


_RECIPE = ("architecture.py", "corpus.py", "documents.py", "train.py")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
