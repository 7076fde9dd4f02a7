"""Whole programs through the front end: the architecture's files, and hostile variants of programs."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.v1model.frontend.sources import check_tokens
from v1model.errors import CompileError
from v1model.frontend import ast, load
from v1model.frontend.check.show import show
from v1model.frontend.lexer import tokenize
from v1model.frontend.preprocess import preprocess

if TYPE_CHECKING:
    from v1model.frontend.lexer import Token

ROUTER = Path(__file__).parent / "router.p4"


def test_router() -> None:
    program = load(ROUTER)
    main = program.declarations[-1]
    assert isinstance(main, ast.Instantiation)
    assert show(main.type_ref.resolved) == "package V1Switch<struct headers_t, struct metadata_t>"
    assert all(argument.value is not None for argument in main.arguments)


@pytest.mark.parametrize(
    ("version", "register", "port"),
    [
        ("20180101", "register<bit<8>>(4) r;", "bit<9>"),
        ("20200408", "register<bit<8>, bit<4>>(4) r;", "bit<9>"),
    ],
)
def test_versions_of_the_architecture(tmp_path: Path, version: str, register: str, port: str) -> None:
    path = tmp_path / "a.p4"
    path.write_text(f"#include <v1model.p4>\n{register}\n")
    program = load(path, defines={"V1MODEL_VERSION": version})
    metadata = next(found for found in program.declarations if found.name == "standard_metadata_t")
    assert isinstance(metadata, ast.StructDeclaration)
    fields = {field.name: show(field.type_ref.resolved) for field in metadata.fields}
    assert fields["egress_spec"] == port
    assert fields["parser_error"] == "error"


def test_all_nodes_are_checked() -> None:
    """Every expression but the callee of a method has a type, every call a kind and a declaration."""
    found = nodes(load(ROUTER))
    callees = {id(node.callee) for node in found if isinstance(node, ast.Call)}
    expressions = [node for node in found if isinstance(node, ast.Expression) and id(node) not in callees]
    assert len(expressions) > 200
    for node in expressions:
        assert node.type is not None, node
        if isinstance(node, ast.Call):
            assert node.kind, node
            assert node.declaration is not None or node.kind == "builtin"


def nodes(node: object) -> list[ast.Node]:
    """The node and all below it, without what names refer to."""
    if isinstance(node, list):
        return [found for item in node for found in nodes(item)]
    if isinstance(node, dict):
        return nodes(list(node.values()))
    if not isinstance(node, ast.Node) or isinstance(node, ast.Annotation):
        return []
    children = [
        getattr(node, name)
        for kind in type(node).__mro__
        for name in getattr(kind, "__slots__", ())
        if name not in ("declaration", "parameter") or isinstance(node, ast.DeclarationStatement)
    ]
    return [node, *nodes(children)]


# --- hostile variants --------------------------------------------------------------------


def variants(tokens: list[Token], generator: random.Random, count: int) -> list[list[Token]]:
    """Token lists with a part cut off, or tokens removed, doubled, exchanged or replaced."""
    own = [index for index, token in enumerate(tokens[:-1]) if token.span.file == str(ROUTER)]
    found = []
    for _ in range(count):
        variant = list(tokens)
        first, second = generator.choice(own), generator.choice(own)
        match generator.randrange(5):
            case 0:
                variant = [*variant[:first], variant[-1]]
            case 1:
                del variant[first]
            case 2:
                variant.insert(first, variant[second])
            case 3:
                variant[first], variant[second] = variant[second], variant[first]
            case 4:
                same = [index for index in own if tokens[index].kind == tokens[first].kind]
                variant[first] = tokens[generator.choice(same)]
        found.append(variant)
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_variants_are_accepted_or_refused(seed: int) -> None:
    tokens = tokenize(preprocess(ROUTER), str(ROUTER), open_files=True)
    for variant in variants(tokens, random.Random(seed), 60):
        with suppress(CompileError):
            check_tokens(variant)
