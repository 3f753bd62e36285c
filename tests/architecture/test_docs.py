"""The documents say what the tree does: RFCs, tests, files and commands that they name exist."""

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
DOCS = [*sorted((CHECKOUT / "docs").rglob("*.md")), CHECKOUT / "README.md"]
CODE = [
    path
    for package in ("agent_reader", "change_executor", "read_gate", "shared", "deploy")
    for path in (CHECKOUT / package).rglob("*")
    if path.suffix in {".py", ".html", ".js", ".css"}
]


def _rfcs(text: str) -> set[str]:
    return set(re.findall(r"RFC (\d{3,5})", text))


def test_every_rfc_that_the_code_follows_is_listed_and_every_listed_one_is_followed() -> None:
    in_code = set().union(*(_rfcs(path.read_text(encoding="utf-8")) for path in CODE))
    rows = (CHECKOUT / "docs/rfcs.md").read_text(encoding="utf-8").splitlines()
    listed = set().union(*(_rfcs(row.split("|")[1]) for row in rows if row.startswith("| RFC")))
    assert in_code == listed


def test_every_test_that_the_documents_point_to_exists() -> None:
    pointed = {
        (document, *match)
        for document in DOCS
        for match in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", document.read_text(encoding="utf-8"))
    }
    assert pointed
    for document, name, function in pointed:
        path = CHECKOUT / name
        assert path.exists(), f"{document.name} points to {name}"
        assert not function or f"def {function}(" in path.read_text(encoding="utf-8"), f"{document.name}: {function}"


def test_every_file_that_the_documents_link_to_exists() -> None:
    for document in DOCS:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_each_guarantee_of_the_threat_model_points_to_its_tests() -> None:
    text = (CHECKOUT / "docs/threat-model.md").read_text(encoding="utf-8")
    for number in range(1, 11):
        section = re.search(rf"^### G{number} (.*?)(?=^###? )", text, re.DOTALL | re.MULTILINE)
        assert section, f"G{number}"
        assert "`tests/" in section[1], f"G{number} names no test"


def test_why_each_module_is_shared_is_written_down() -> None:
    listed = re.findall(r"`(\w+)(?:\.py|/)?`", (CHECKOUT / "docs/decisions/0003-what-is-shared.md").read_text("utf-8"))
    found = {path.stem for path in (CHECKOUT / "shared").iterdir() if not path.stem.startswith("__")}
    assert found == set(listed) - {"shared"}
