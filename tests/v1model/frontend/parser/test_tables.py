from __future__ import annotations

from typing import Any

from tests.v1model.frontend.sources import declared, parsed
from v1model.frontend import ast


def table(body: str) -> Any:
    return declared(parsed(f"control C() {{ table t {{ {body} }} apply {{ }} }}"), "C").locals[0]


def test_keys_and_actions() -> None:
    found = table(
        """
        key = { h.a: exact @name("a"); h.b & 0xF: ternary; }
        actions = { a; @defaultonly .b(1, x = 2); }
        """
    )
    assert [key.match_kind for key in found.keys] == ["exact", "ternary"]
    assert found.keys[0].annotations[0].expressions[0].value == "a"
    second = found.actions[1]
    assert (second.name.name, second.name.absolute, len(second.arguments)) == ("b", True, 2)
    assert second.annotations[0].name == "defaultonly"


def test_properties() -> None:
    found = table("actions = { a; } size = 4; const implementation = profile(32); counters = c;")
    assert list(found.properties) == ["size", "implementation", "counters"]
    assert found.properties["implementation"].is_const


def test_default_action() -> None:
    assert isinstance(table("actions = { a; } default_action = a;").default_action, ast.Call)
    found = table("actions = { a; } const default_action = a(1, 2);")
    assert found.default_action_const
    assert len(found.default_action.arguments) == 2


def test_entries() -> None:
    found = table(
        """
        key = { x: ternary; y: range; }
        actions = { a; }
        const entries = {
            (1, 2): a(3);
            const priority = 10: (1 &&& 3, 2 .. 5): a(4) @name("e");
            priority = (5 + 6): (_, default): a(5);
        }
        """
    )
    assert found.entries_const
    assert [len(entry.keys) for entry in found.entries] == [2, 2, 2]
    assert [entry.is_const for entry in found.entries] == [False, True, False]
    assert [entry.priority is None for entry in found.entries] == [True, False, False]
    assert found.entries[1].annotations[0].name == "name"


def test_entry_with_parentheses_around_an_expression() -> None:
    found = table("key = { x: exact; } actions = { a; } entries = { (1) + 2: a(); (3): a(); }")
    assert not found.entries_const
    assert isinstance(found.entries[0].keys[0], ast.Binary)
    assert isinstance(found.entries[1].keys[0], ast.IntLiteral)


def test_priority_can_be_a_name() -> None:
    found = table("key = { priority: exact; } actions = { a; } entries = { priority: a(); }")
    assert found.entries[0].priority is None
    assert found.entries[0].keys[0].name == "priority"
