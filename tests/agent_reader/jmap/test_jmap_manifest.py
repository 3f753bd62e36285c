"""Each statement has a test, each marked test a statement, and the published matrix is the one that follows."""

from __future__ import annotations

from tests.agent_reader.jmap.matrix import DOCUMENT, document_with, marked_tests, matrix, statements


def test_the_statements_are_numbered_from_1_to_185() -> None:
    assert [str(number) for number in range(1, 186)] == [each.id for each in statements()]
    assert all(each.says and each.source and each.area for each in statements())


def test_every_statement_has_a_test() -> None:
    tests = marked_tests()
    assert [] == [each.id for each in statements() if not tests.get(each.id)]


def test_every_marked_test_names_a_statement_that_there_is() -> None:
    assert set() == set(marked_tests()) - {each.id for each in statements()}


def test_the_published_matrix_follows_from_manifest_and_tests() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document_with(matrix()), (
        "run: python -m tests.agent_reader.jmap.matrix"
    )
