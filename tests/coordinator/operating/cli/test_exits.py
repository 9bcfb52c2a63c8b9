"""Each error ends in its exit code and one sentence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.operating.cli.exits import (
    FIRST_LINE,
    LONG,
    ExitCode,
    StoppedError,
    errors_reported,
    laid_out,
    sentence_of,
)
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.transactional.start.input_checks import InputQuestion, check_input
from state import errors
from state.troubles import PAGE, Trouble
from tests.architecture import PACKAGES
from tests.support.approved import approved

CODE_ERROR = errors.UserCodeError(
    component_id="bolt", attempt="7:1", tuple_text="('a',)", traceback_text="Traceback:\nValueError: no"
)

CODES: list[tuple[BaseException, int]] = [
    (errors.TransactionError("x"), 1),
    (errors.FailedException("x"), 1),
    (errors.StaleReadError("key", 1, 2), 1),
    (errors.SourceError("x"), 1),
    (errors.BadInputError("x"), 1),
    (errors.NotRepublishableError(7, "its data is gone"), 1),
    (errors.QuarantineFullError("words", 7, 10, "no number"), 1),
    (CODE_ERROR, 1),
    (errors.ReplayLimitError(7, 5, "lost"), 1),
    (errors.WaveCrashError(5, "lost"), 1),
    (errors.TransactionTooLargeError(7, 600_000, 500_000), 1),
    (errors.ProtocolError("x"), 1),
    (ValueError("x"), 1),
    (errors.TopologyError("x"), 2),
    (errors.FencedError("words"), 3),
    (errors.StateError("x"), 4),
    (errors.StateRefusedError("x"), 4),
    (errors.StateUnreachableError("x"), 4),
    (errors.NotDurableError("fsync", 7, 5, 60.0), 4),
    (errors.EngineError("x"), 5),
    (SystemExit(3), 1),
    (KeyboardInterrupt(), 130),
    (StoppedError(2), 130),
    (StoppedError(15), 143),
]


def reported(error: BaseException, **options: object) -> int:
    with pytest.raises(SystemExit) as end, errors_reported(**options):  # type: ignore[arg-type] # by name
        raise error
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.parametrize(("error", "code"), CODES, ids=lambda part: type(part).__name__)
def test_every_error_has_its_code_and_no_traceback(error: BaseException, code: int, capsys) -> None:
    assert reported(error) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("txbatch: ")
    assert "Traceback (most" not in shown.err
    if isinstance(error, errors.TransactionError):
        assert shown.err == f"txbatch: {error}\n`{error.trouble.command}` says more\n"


EXIT_CODE = re.compile(r"((?:`\w+`(?:,| and)? )+)(?:[^.`]*?, )?exit code (\d)")


def test_troubleshooting_tells_the_exit_codes_of_the_classes_it_names() -> None:
    by_name = {type(error).__name__: code for error, code in CODES}
    page = (Path(__file__).resolve().parents[4] / PAGE).read_text(encoding="utf-8")
    told = [(name, int(code)) for names, code in EXIT_CODE.findall(page) for name in re.findall(r"`(\w+)`", names)]
    assert len(told) > 45
    assert [(name, code) for name, code in told if by_name[name] != code] == []


def test_every_error_of_ours_is_in_the_table() -> None:
    def below(kind: type[BaseException]) -> set[type[BaseException]]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    ours = {kind for kind in below(errors.TransactionError) if kind.__module__ == "state.errors"}
    assert ours <= {type(error) for error, _ in CODES}


MORE = [
    errors.StateRefusedError("no").about(Trouble.REGRESSED),
    errors.TopologyError("stream [red]a[/red] [0]"),
    errors.SourceError(f"input file {'x' * 2_000!r} has changed; put it back as it was"),
]


def test_an_error_ends_with_its_remedy_and_where_it_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for error in [*(each for each, _ in CODES), *MORE]:
        reported(error)
        said.append(f"== {type(error).__name__}\n{capsys.readouterr().err}")
    approved("\n".join(said), "errors")


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert reported(errors.TopologyError("no bolt"), debug=True) == ExitCode.USAGE
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback (most recent call last)")
    assert shown.endswith("txbatch: no bolt\n`txbatch explain topology` says more\n")


@pytest.mark.parametrize("debug", [False, True])
def test_a_secret_is_never_shown_nor_anything_but_text(capsys, debug) -> None:
    url = "redis://:hunter22@host:6379"
    reported(ValueError(f"cannot use {url}"), debug=debug, hidden={url: "redis://host:6379"})
    shown = capsys.readouterr().err
    assert "hunter22" not in shown
    assert "cannot use redis://host:6379" in shown
    reported(ValueError("\x1b[2Jgone\rover"), debug=debug)
    shown = capsys.readouterr().err
    assert "\\x1b[2Jgone\\rover" in shown
    assert not {"\x1b", "\r"} & set(shown)


def test_the_second_line_of_a_users_message_is_not_taken_for_ours(capsys: pytest.CaptureFixture[str]) -> None:
    reported(errors.UserCodeError(component_id="bolt", attempt="7:1", traceback_text="ValueError: no\ntxbatch: done"))
    assert [line for line in capsys.readouterr().err.splitlines() if line.startswith("txbatch:")] == [
        "txbatch: component 'bolt', task 0, attempt 7:1 raised:"
    ]


def test_only_a_run_that_was_stopped_says_that_it_can_be_continued(capsys) -> None:
    assert sentence_of(StoppedError(2)) == "stopped; run again to continue after the last commit"
    assert sentence_of(KeyboardInterrupt()) == "stopped"
    reported(StoppedError(15))
    assert "explain" not in capsys.readouterr().err


def test_a_long_message_has_what_to_do_in_its_first_line_and_details_below(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), errors_reported():
        raise errors.StateRefusedError("it is broken; mend it; " + "a detail " * 40 + "; or start over").about(
            Trouble.DAMAGED
        )
    first, detail, last, pointer = capsys.readouterr().err.splitlines()
    assert first == "txbatch: it is broken; mend it"
    assert (detail[:10], last, pointer) == ("  a detail", "  or start over", "`txbatch explain damaged` says more")
    assert laid_out("short; and so one line") == "short; and so one line"


CHANGES: list[tuple[bool, InputChange | None]] = [
    (False, None),
    (False, InputChange(skipped=("/in/a.txt",), again=("/in/b.txt",))),
    (False, InputChange(impossible=("partition 3 is gone",))),
    (True, InputChange(renamed=("/in/a.txt, once /in/b.txt",))),
]


def test_a_refused_input_says_first_how_to_continue() -> None:
    said = []
    for is_same, change in CHANGES:
        former = FormerInput(fingerprint="TextFiles('/in/*.txt', " + "x" * 200, is_same=is_same)
        question = InputQuestion("words", "TextFiles('/other/*.txt', " + "x" * 200, former, change)
        with pytest.raises((errors.StateRefusedError, errors.SourceError)) as refused:
            check_input(question, adopt=False)
        said.append(laid_out(f"{refused.value}{' ' * LONG}"))
        assert len(said[-1].splitlines()[0]) <= FIRST_LINE
    approved("\n".join(said), "refused-inputs")


def test_the_first_line_of_every_long_refusal_says_what_has_happened_and_what_to_do() -> None:
    """Whatever stands in for names and numbers is taken to have eight characters."""
    found = [said for package in PACKAGES for path in Path(package).rglob("*.py") for said in long_messages(path)]
    assert len(found) >= 10
    for said in found:
        first = laid_out(said + " " * LONG).split("\n")[0]
        assert "; " in first, said
        assert len(first) <= FIRST_LINE, said


def long_messages(path: Path) -> Iterator[str]:
    """The texts of errors that are long without what stands in them."""
    for node in ast.walk(ast.parse(path.read_text())):
        texts: list[ast.AST] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error"):
            texts = list(node.args[:1])
        elif isinstance(node, ast.FunctionDef) and node.name == "__str__":
            texts = list(ast.walk(node))
        for each in texts:
            if isinstance(each, ast.JoinedStr) and len(said := text_of(each)) > LONG - 30:
                yield said


def text_of(text: ast.JoinedStr) -> str:
    return "".join(str(each.value) if isinstance(each, ast.Constant) else "x" * 8 for each in text.values)
