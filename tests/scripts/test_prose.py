"""What scripts/prose.py finds in pages and docstrings, and what it leaves alone."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("sentencex", reason="an environment of before: make setup-all")
pytest.importorskip("proselint", reason="an environment of before: make setup-all")

ROOT = Path(__file__).resolve().parents[2]
LONG = "The switch " + "merges and " * 20 + "forwards."


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prose", ROOT / "scripts" / "prose.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its data classes look for their types
    spec.loader.exec_module(module)
    return module


def found(prose: ModuleType, text: str) -> list[str]:
    passages = prose.passages(text)
    lengths = prose.lengths_in("page.md", passages)
    rules = prose.WORDS | prose.DOCUMENT_WORDS | prose.REVISIONS
    words = [finding for passage in passages for finding in prose.words_in("page.md", passage.text, rules)]
    return [*lengths, *words]


def test_a_long_sentence_is_found_in_text_lists_and_tables(prose: ModuleType) -> None:
    for text in (LONG, f"- {LONG}", f"| a | b |\n|---|---|\n| {LONG} | x |"):
        assert any("a sentence of 43 words" in finding for finding in found(prose, text))


def test_short_sentences_are_none_together(prose: ModuleType) -> None:
    assert not found(prose, "It waits for 0.2 s. " * 12)


def test_the_mean_counts_text_alone(prose: ModuleType) -> None:
    sentence = "one two three four five six seven eight nine ten " * 2 + "and some more words. "
    assert any("in the mean" in finding for finding in found(prose, sentence.capitalize() * 3))
    assert not found(prose, f"| a |\n|---|\n| {sentence.capitalize()} |")


def test_code_is_no_prose(prose: ModuleType) -> None:
    assert not found(
        prose, f"A command:\n\n    {LONG} 7facc6e\n\n```sh\nplay {LONG}\n```\n\nThe file `play 7facc6e`."
    )


def test_private_words_and_revisions_are_found(prose: ModuleType) -> None:
    assert any("write run" in finding for finding in found(prose, "One play took a minute."))
    assert any("docs/lab" in finding for finding in found(prose, "It took a minute at 7facc6e."))
    assert not found(prose, "It has 1234567 entries.")


def test_first_lines_of_docstrings_are_read(prose: ModuleType) -> None:
    source = '"""The heir of a slot."""\n\ndef give():\n    """Give the slot.\n\n    To its heir.\n    """\n'
    assert list(prose.first_lines(source)) == [(1, "The heir of a slot.", False), (4, "Give the slot.", True)]


def test_fragments_of_sentences_are_no_docstrings(
    prose: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        'MOST = 8\n"""Of one tenant."""\n'
        'class Slot:\n    """Where a block lies."""\n\n    key: bytes\n    """Key of the block."""\n\n'
        '    def is_free(self) -> bool:\n        """Whether it is free."""\n'
    )
    (tmp_path / "slots.py").write_text(source)
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    findings = list(prose.in_docstrings(["slots.py"]))
    assert [finding.split(" begins")[0] for finding in findings] == [
        "slots.py:2: 'Of'",
        "slots.py:4: 'Where'",
        "slots.py:10: 'Whether'",
    ]


def test_the_documents_keep_to_it(prose: ModuleType) -> None:
    assert list(prose.in_documents(prose.documents())) == []


def test_the_pages_are_short_enough(prose: ModuleType) -> None:
    """Without what is generated to be looked up, and without lists of defects."""
    words = {page: len(prose.read(page).split()) for page in prose.documents() if page != "CONTRIBUTING.md"}
    notebook = sum(words[page] for page in words if page.startswith(prose.NOTEBOOK))
    assert notebook <= 27_000
    assert sum(words.values()) - notebook <= 45_500


def test_the_notebook_may_name_revisions(prose: ModuleType) -> None:
    words = [prose.WORDS | prose.DOCUMENT_WORDS, prose.REVISIONS]
    text = "It took a minute at revision 7facc6e."
    assert [any(prose.words_in("page.md", text, each)) for each in words] == [False, True]


def test_generated_pages_are_no_documents(prose: ModuleType) -> None:
    assert "docs/reference.md" not in prose.documents()
