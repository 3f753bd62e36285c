"""Revisions of tables: which way back there is, and which releases of this machine work with which."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.revisions import DowngradeRefused, Revision, Stays, installed_releases, table_of, way_back

REVISIONS = tuple(Revision(f"000{number}", f"1.{number}", f"thing {number}") for number in range(1, 5))


@pytest.mark.parametrize(
    ("found", "to", "taken_back"),
    [
        ("0004", "0001", ["0004", "0003", "0002"]),
        ("0003", "0002", ["0003"]),
        ("0002", "0002", []),
        ("0001", "0001", []),
    ],
)
def test_the_way_back_goes_from_the_newest_on(found: str, to: str, taken_back: list[str]) -> None:
    assert taken_back == [revision.number for revision in way_back(found, to, REVISIONS, "program downgrade")]


@pytest.mark.parametrize(
    ("found", "to", "code"),
    [
        ("0004", "0005", "unknown_revision"),
        ("0004", "base", "unknown_revision"),
        # What alembic would understand in its own way.
        ("0004", "-1", "unknown_revision"),
        ("0004", "", "unknown_revision"),
        ("0002", "0003", "already_older"),
        ("0009", "0003", "newer_program"),
        (None, "0003", "no_tables"),
    ],
)
def test_where_there_is_no_way_back_the_reason_has_a_name(found: str | None, to: str, code: str) -> None:
    with pytest.raises(DowngradeRefused) as refused:
        way_back(found, to, REVISIONS, "program downgrade")
    assert code == refused.value.code
    assert refused.value.detail
    assert refused.value.fix
    if code == "newer_program":
        assert "program downgrade" in refused.value.fix


def test_what_stays_for_good_is_said_before_any_step_is_tried() -> None:
    stays = Revision("0002", "1.2", "a lock", Stays("would_open", "It would open.", "Stay."))
    revisions = (REVISIONS[0], stays, *REVISIONS[2:])
    assert [REVISIONS[3], REVISIONS[2]] == list(way_back("0004", "0002", revisions, "program downgrade"))
    with pytest.raises(DowngradeRefused) as refused:
        way_back("0004", "0001", revisions, "program downgrade")
    assert ("would_open", "It would open.", "Stay.") == (refused.value.code, refused.value.detail, refused.value.fix)


def install(root: Path, release: str, revision: str | None, *, house: str = "executor", python: str = "3.11") -> Path:
    module = root / "releases" / release / house / f"lib/python{python}/site-packages/tables/migrations/__init__.py"
    module.parent.mkdir(parents=True)
    module.write_text("# nothing\n" if revision is None else f'X = 1\nHEAD: Final = "{revision}"\n')
    return module


def test_releases_of_this_machine_are_listed_beside_the_revision_that_they_work_with(tmp_path: Path) -> None:
    newest = install(tmp_path, "cc", "0004")
    install(tmp_path, "aa", "0002", python="3.13")
    install(tmp_path, "bb", "0002")
    install(tmp_path, "dd", None)
    install(tmp_path, "ee", "0003", house="reader")
    # Reached by the link that a running program has.
    (tmp_path / "executor").symlink_to(tmp_path / "releases/cc/executor")
    module = tmp_path / "executor" / newest.relative_to(tmp_path / "releases/cc/executor")
    found = installed_releases(module)
    places = {number: [Path(place).name for place in places] for number, places in found.items()}
    assert {"0004": ["cc"], "0002": ["aa", "bb"]} == places
    lines = table_of(REVISIONS, "0004", found)
    assert ["* 0004  1.4  thing 4", f"          installed here: {tmp_path}/releases/cc"] == lines[:2]
    assert "  0001  1.1  thing 1" == lines[-1]


@pytest.mark.parametrize("place", ["checkout/tables/__init__.py", "releases/x", "releases/x/executor/bin/tables.py"])
def test_without_such_an_installation_there_are_none(tmp_path: Path, place: str) -> None:
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).write_text('HEAD: Final = "0001"\n')
    assert {} == installed_releases(tmp_path / place)
