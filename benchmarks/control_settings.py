"""The control's settings: as most people would choose them, and the best we know.

A comparison is only as good as the settings of its weaker side. Every setting below was tried by itself;
these did not help and are left out: codegen off, another garbage collector, one core, a trigger every 0 seconds,
one row per file, ``toArrow``. Asynchronous progress tracking works neither with foreachBatch nor with `availableNow`.
"""

from __future__ import annotations

COMMON = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

PLAIN = {
    **COMMON,
    # over TCP, Nagle's algorithm and delayed acknowledgements cost 40 ms per job
    "spark.python.unix.domain.socket.enabled": "true",
    # one per core instead of 200
    "spark.sql.shuffle.partitions": "2",
    # in such a small job, replanning between stages costs more than it gains
    "spark.sql.adaptive.enabled": "false",
}

BEST = {
    **PLAIN,
    "spark.sql.shuffle.partitions": "1",
    "spark.locality.wait": "0",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "1ms",
    # by default, every ten batches rewrite the list of all files seen
    "spark.sql.streaming.fileSource.log.compactInterval": "1000",
    # without Hadoop's native library each checkpoint file starts chmod several times: the default manager, its
    # checksum files and those of the local file system together cost 40 ms per batch
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # a run of one minute does not earn back what the optimising compiler costs on two cores
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}

TUNINGS = {"best": BEST, "plain": PLAIN}
"""Name -> Spark settings."""
