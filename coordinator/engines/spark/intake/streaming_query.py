"""Finds the streaming query and the micro-batch that a DataFrame belongs to, from Spark's own checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator.engines.spark.session import refuse_connect
from coordinator.sources.micro_batches import MicroBatch
from state.codec import digest64
from state.errors import EngineError, TopologyError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY_ID = "sql.streaming.queryId"
"""Spark's name for the local property of a query's thread; the same in every version since 2.4."""


def micro_batch_of(rows: DataFrame, batch_id: int) -> MicroBatch:
    """Returns the micro-batch of these rows; called on the thread on which Spark calls `foreachBatch` (driver).

    The query's offset log has one file for each batch, which is written before the batch runs, and only read when the
    batch is repeated. Its content includes the time at which the batch was planned, and so identifies the batch: a
    checkpoint that was restored or cleared plans another batch under the same number.

    Raises:
        TopologyError: no streaming query is running on this thread, or it is one of Spark Connect.
        EngineError: the query's offset log cannot be read.
    """
    session = rows.sparkSession
    refuse_connect(session, "")
    query_id = session.sparkContext.getLocalProperty(QUERY_ID)
    if not query_id:
        raise TopologyError(
            "exactly_once was called outside a streaming query: hand it to writeStream.foreachBatch, and leave "
            "PYSPARK_PIN_THREAD as it is by default"
        )
    try:
        planned = _offset_log_entry(session, query_id, batch_id)
    except Exception as error:  # whatever Py4J raises
        first = str(error).partition("\n")[0]
        raise EngineError(
            f"the offsets of batch {batch_id} of streaming query {query_id} cannot be read from its checkpoint: {first}"
            "; without them a repeated batch looks like any other one: make the checkpoint readable, run again"
        ) from error
    return MicroBatch(query_id, batch_id, digest64(planned.encode()))


def _offset_log_entry(session: Any, query_id: str, batch_id: int) -> str:
    jvm = session.sparkContext._jvm  # noqa: SLF001 - Spark shows a query's checkpoint on the Java side only
    running = session._jsparkSession.sharedState().activeStreamingQueries()  # noqa: SLF001
    query = running.get(jvm.java.util.UUID.fromString(query_id))
    if query is None:
        raise LookupError("Spark says that no such query is running")
    path = jvm.org.apache.hadoop.fs.Path(f"{query.resolvedCheckpointRoot()}/offsets/{batch_id}")
    file_system = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001
    stream = file_system.open(path)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
