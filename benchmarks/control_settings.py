"""How the control is set up: as most people would, and as well as we know how.

A comparison is worth as much as its weaker side was given. Every setting below was tried one at a time;
what did not help is not here: codegen off, another collector, one core, a trigger every 0 seconds,
one row a file, ``toArrow``. Asynchronous progress tracking excludes foreachBatch and `availableNow`.
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
    # Nagle and delayed acknowledgement cost 40 ms a job over TCP
    "spark.python.unix.domain.socket.enabled": "true",
    # as many as there are cores, of the 200
    "spark.sql.shuffle.partitions": "2",
    # replanning between the stages of so small a job costs more than it gains
    "spark.sql.adaptive.enabled": "false",
}

BEST = {
    **PLAIN,
    "spark.sql.shuffle.partitions": "1",
    "spark.locality.wait": "0",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "1ms",
    # the default rewrites the list of all files seen every ten batches
    "spark.sql.streaming.fileSource.log.compactInterval": "1000",
    # without Hadoop's native library each file of a checkpoint costs several starts of chmod: the default
    # manager, its checksum files, and those of the local file system come to 40 ms a batch together
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # a run of a minute does not earn back what the optimising compiler takes from two cores
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}

TUNINGS = {"best": BEST, "plain": PLAIN}
"""Name -> Spark settings."""
