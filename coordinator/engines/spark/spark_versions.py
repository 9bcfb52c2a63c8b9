"""What differs between versions of Spark: whether txbatch runs on them, and names that not all of them have.

No other module imports a private name that has moved, so an unusable version is refused with a clear message and never
with an `ImportError`. Functions import PySpark when they need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from state.errors import EngineError

OLDEST_SPARK, NEWEST_SPARK, NEXT_SPARK = (3, 5), (4, 3), (5, 0)
"""The oldest and the newest version tried, and the first one that is refused because it may have changed too much."""
SUPPORTED = "PySpark 3.5 to 4.3"


def numbers_of(version: str) -> tuple[int, ...]:
    """Returns the first two numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def oldest_java(spark_version: str) -> int:
    """Returns the oldest Java that a version of Spark runs on."""
    return 17 if numbers_of(spark_version) >= (4, 0) else 8


def pyspark_version() -> str:
    """Returns the version of this process's PySpark."""
    import pyspark

    return str(pyspark.__version__)


def check_pyspark() -> None:
    """Refuses a PySpark that txbatch does not run on (driver, before anything else of the engine).

    Raises:
        EngineError: this process's PySpark is too old or too new.
    """
    version = pyspark_version()
    if not OLDEST_SPARK <= numbers_of(version) < NEXT_SPARK:
        raise EngineError(
            f"PySpark {version} is installed, and txbatch runs on {SUPPORTED}; install the one of these that your "
            "cluster has, as in pip install 'pyspark==4.1.*'"
        )


def check_spark(version: str) -> None:
    """Refuses a Spark in Java that this process's PySpark is not made for (driver, at the start of a session).

    Args:
        version: the version of Java's Spark.

    Raises:
        EngineError: their versions differ in one of the first two numbers.
    """
    own = pyspark_version()
    if numbers_of(version) != numbers_of(own):
        wanted = ".".join(map(str, numbers_of(version)))
        raise EngineError(
            f"PySpark {own} drives Spark {version}, for which it was not made; install the same version, pip install "
            f"'pyspark=={wanted}.*', or unset SPARK_HOME to use the Spark that PySpark brings"
        )


def java_version_of_spark(jvm: Any) -> str:
    """Returns the version of Spark that a Java process has loaded, whether or not there is a context."""
    return str(getattr(jvm.org.apache.spark, "package").SPARK_VERSION())  # noqa: B009 - a keyword of Java's, not ours


def load_records(answer: Sequence[Any], serializer: Any) -> list[Any]:
    """Returns the records of a job's partitions.

    Args:
        answer: the port or path where Java sends them, and the secret.
        serializer: pyspark's serializer, which reads them.
    """
    try:
        from pyspark.util import local_connect_and_auth
    except ImportError:  # PySpark 3.5
        from pyspark.java_gateway import local_connect_and_auth  # type: ignore[attr-defined]
    # pyspark's own function for this leaves the socket open up to 4.1
    stream, connection = local_connect_and_auth(*answer)
    with connection, stream:
        connection.settimeout(None)
        return list(serializer.load_stream(stream))
