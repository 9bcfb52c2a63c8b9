"""The cause is told first, with what helps, whatever Spark prints around it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.engines.spark.crash_story import blamed, crash_story
from coordinator.engines.waves.worker_traceback import CrashStory
from coordinator.watching.failure_cause import CrashKind

EXCEPTION = "org.apache.spark.SparkException: "
EXECUTOR_LOST = "ExecutorLostFailure (executor 3 exited)"
JAVA_STACK = "\n".join(f"\tat org.apache.spark.{name}(Executor.scala:{name})" for name in range(60))
CALLING = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.runJob.\n"
FAILURE = "Job aborted due to stage failure: Task 0 in stage 18.0 failed 1 times, most recent failure: "
TASK = "Lost task 0.0 in stage 18.0 (TID 6) (10.0.0.7 executor 3): "
WORKER = "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py"
NO_MSGPACK = f"""\
Traceback (most recent call last):
  File "{WORKER}", line 4327, in invoke_udf
    run_process()
  File "{WORKER}", line 4100, in read_command
    command = serializer._read_with_length(file)
  File "/usr/lib/python3.11/importlib/__init__.py", line 126, in import_module
    return _bootstrap._gcd_import(name[level:], package, level)
  File "/tmp/spark-1/userFiles-2/txbatch_code_00.zip/state/codec.py", line 16, in <module>
    import msgpack
ModuleNotFoundError: No module named 'msgpack'
 SQLSTATE: 38000
"""
IN_A_BOLT = f"""\
Traceback (most recent call last):
  File "{WORKER}", line 4327, in invoke_udf
    run_process()
  File "/home/ada/jobs/count.py", line 12, in execute
    self.parse(tup["line"])
    ^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/ada/jobs/count.py", line 31, in parse
    raise Weird("two",
  File "/tmp/x/txbatch_code_00.zip/coordinated_bolt/outbox.py", line 3, in add
    box
count.Weird: two
lines
"""


OURS = "/tmp/x/txbatch_code_00.zip/state/codec.py"


def python_exception(traceback: str) -> Exception:
    head = "org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from the worker: "
    failed = f"{CALLING}: org.apache.spark.SparkException: {FAILURE}{TASK}{head}{traceback}\n{JAVA_STACK}\n"
    return RuntimeError(f"{failed}\nDriver stacktrace:\n{JAVA_STACK}\nCaused by: {head}{traceback}\n{JAVA_STACK}")


def java_exception(text: str) -> Exception:
    return RuntimeError(
        f"{CALLING}: org.apache.spark.SparkException: {FAILURE}{TASK}{text}\n{JAVA_STACK}\nDriver stacktrace:"
    )


def test_a_module_that_executors_lack_is_named_first_with_the_remedy_and_is_not_tried_again() -> None:
    story = crash_story(python_exception(NO_MSGPACK))

    assert story.reason.startswith("ModuleNotFoundError: No module named 'msgpack'; executors run a Python that cannot")
    assert "PYSPARK_PYTHON" in story.reason
    assert "txbatch explain spark" in story.reason
    assert story.kind is CrashKind.CERTAIN


@pytest.mark.parametrize(
    ("frame", "error", "kind"),
    [
        (OURS, "AttributeError: module 'msgpack' has no attribute 'Packer'", "ENGINE"),
        (OURS, "MemoryError", "LOST"),
        ("/home/ada/jobs/count.py", "AttributeError: module 'msgpack' has no attribute 'Packer'", "LOST"),
        (WORKER, "EOFError", "LOST"),
    ],
)
def test_no_batch_is_blamed_for_what_our_own_code_raises_in_a_worker(frame: str, error: str, kind: str) -> None:
    frames = "".join(f'  File "{file}", line 9, in pack\n' for file in (WORKER, frame))
    traceback = f"Traceback (most recent call last):\n{frames}{error}"
    assert crash_story(python_exception(traceback)).kind is CrashKind[kind]


def test_the_cause_in_python_is_told_with_the_users_line_nearest_to_it() -> None:
    assert (
        crash_story(python_exception(IN_A_BOLT)).reason
        == "count.Weird: two | lines, in parse (/home/ada/jobs/count.py, line 31)"
    )


CERTAIN, ENGINE, LOST = CrashKind.CERTAIN, CrashKind.ENGINE, CrashKind.LOST
NO_PROGRAM = 'Cannot run program "/none/python": error=2, No such file or directory'
NO_SPACE = "No space left on device"
EXITED = "Python worker exited unexpectedly (crashed)"
NO_MODULE = "/bin/python: No module named no"
ENDED = f"native code (Spark: {EXITED})"
SETTINGS = ". Consider setting 'spark.sql.execution.pyspark.udf.faulthandler.enabled' or'spark.python.worker.…'"


@pytest.mark.parametrize(
    ("text", "beginning", "advice", "kind"),
    [
        (f"java.io.IOException: {NO_PROGRAM}", f"{NO_PROGRAM}; ", "PYSPARK_PYTHON", CERTAIN),
        (f"java.io.IOException: {NO_SPACE}", f"{NO_SPACE}; ", "spark.local.dir", CERTAIN),
        (f"{EXCEPTION}{EXITED}{SETTINGS}", "a worker ended without a word: killed, out of memory, ", ENDED, LOST),
        (f"{EXCEPTION}\nError from python worker:\n  {NO_MODULE}\nPATH:", NO_MODULE, "", LOST),
        ("java.lang.OutOfMemoryError: heap", "java.lang.OutOfMemoryError: heap; ", "driver.memory", LOST),
        (f"{EXECUTOR_LOST}: SIGKILL", EXECUTOR_LOST, "", LOST),
    ],
)
def test_a_cause_in_java_is_told_without_what_wraps_it(text: str, beginning: str, advice: str, kind: CrashKind) -> None:
    story = crash_story(java_exception(text))

    assert story.reason.startswith(beginning)
    assert advice in story.reason
    assert "\n" not in story.reason
    assert story.kind is kind


def raises(text: str) -> Callable[[], None]:
    def job() -> None:
        raise java_exception(text)

    return job


BROKEN = 'java.lang.NullPointerException: Cannot invoke "java.io.InputStream.read()"'
LOST_WORKER = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)."


@pytest.mark.parametrize("crashed", [BROKEN, LOST_WORKER], ids=["unknown", "a worker was lost"])
@pytest.mark.parametrize(
    ("nothing", "kind", "told"),
    [
        (lambda: None, CrashKind.LOST, False),
        (raises(BROKEN), CrashKind.ENGINE, True),
        (raises('java.io.IOException: Cannot run program "/none/python": error=2'), CrashKind.CERTAIN, True),
        (raises("org.apache.spark.SparkException: Job 7 cancelled part of cancelled job group"), CrashKind.LOST, False),
    ],
    ids=["does run", "fails, too", "can never run", "is cancelled"],
)
def test_no_batch_is_blamed_for_a_spark_that_runs_no_job_at_all(
    crashed: str, nothing: Callable[[], None], kind: CrashKind, told: bool
) -> None:
    story = blamed(crash_story(java_exception(crashed)), nothing, has_processed=True)
    assert (story.kind, "; a job that does nothing fails " in story.reason) == (kind, told)


@pytest.mark.parametrize("kind", [CrashKind.OVERDUE, CrashKind.CERTAIN])
def test_a_crash_whose_cause_is_known_is_not_looked_into(kind: CrashKind) -> None:
    story = CrashStory("it hangs", kind)
    assert blamed(story, raises(BROKEN), has_processed=False) is story


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (BROKEN, ENGINE),
        (LOST_WORKER, LOST),
        ("java.lang.OutOfMemoryError: heap", LOST),
        (f"{EXECUTOR_LOST}: SIGKILL", LOST),
    ],
)
def test_no_batch_is_blamed_for_an_unknown_failure_of_java_while_none_was_ever_processed(
    text: str, kind: CrashKind
) -> None:
    story = blamed(crash_story(java_exception(text)), lambda: None, has_processed=False)
    assert story.kind is kind
    assert story.reason.endswith("; no batch of this run was processed") == (kind is CrashKind.ENGINE)


def test_a_task_that_was_overdue_tells_its_own_story() -> None:
    text = "component 'work', task 0, attempt 4:12ab had not returned when the message timeout of 60 s ran out"
    traceback = IN_A_BOLT.replace("count.Weird: two\nlines", f"coordinator.engines.waves.alarm.OverdueError: {text}")

    story = crash_story(python_exception(traceback))

    assert story.reason == f"{text}, in parse (/home/ada/jobs/count.py, line 31)"
    assert story.kind is CrashKind.OVERDUE


@pytest.mark.parametrize("error", [RuntimeError(), ValueError("\n\n")])
def test_an_error_without_words_is_told_by_its_kind(error: Exception) -> None:
    assert crash_story(error).reason == type(error).__name__


def test_a_story_is_never_longer_than_a_screen() -> None:
    assert len(crash_story(RuntimeError("x" * 10_000)).reason) <= 1000


def raised(error: Exception) -> Exception:
    """What pyspark's own code raises on the driver; compiled under the name of one of its files."""
    code = compile("raise error", "/opt/lib/python3.11/site-packages/pyspark/util.py", "exec")
    try:
        exec(code, {"error": error})
    except Exception as caught:  # noqa: BLE001 - any
        return caught
    raise AssertionError


@pytest.mark.parametrize(
    "error",
    [
        TypeError("'itertools.chain' object does not support the context manager protocol"),
        ImportError("cannot import name '_load_from_socket' from 'pyspark.rdd'"),
        AttributeError("'SparkContext' object has no attribute '_pickled'"),
        TypeError("'JavaPackage' object is not callable"),
        RuntimeError("An error occurred.\npy4j.Py4JException: Method setSerializer([]) does not exist\n\tat py4j"),
    ],
    ids=["type", "import", "attribute", "java class", "java method"],
)
def test_an_error_of_the_drivers_own_code_is_not_tried_again_and_names_its_line(error: Exception) -> None:
    story = crash_story(raised(error))
    assert story.kind is CrashKind.CERTAIN
    assert "(on the driver, util.py, line 1); txbatch does not fit this PySpark (" in story.reason
    assert "\tat" not in story.reason


def test_an_error_of_the_users_code_on_the_driver_is_left_as_it_is() -> None:
    code = compile("raise TypeError('no columns')", "/home/ada/jobs/count.py", "exec")
    with pytest.raises(TypeError) as caught:
        exec(code)
    assert crash_story(caught.value).kind is CrashKind.LOST


def test_the_type_error_of_a_worker_is_none_of_the_drivers() -> None:
    story = crash_story(python_exception(IN_A_BOLT.replace("count.Weird: two\nlines", "TypeError: no")))
    assert "on the driver" not in story.reason
