"""Sources: spouts that read inputs people have, and the formats that make tuples of their records.

Kafka has its own package, `coordinator.sources.kafka`, since it needs an extra. The interfaces of spouts are defined
in `coordinator/spouts/`.
"""

from typing import TYPE_CHECKING

from state.lazy_exports import hand_on_lazily

if TYPE_CHECKING:
    from coordinated_bolt.streams.declared import DEAD_LETTER_STREAM
    from coordinator.sources.batches import Batches
    from coordinator.sources.data_frame_batches import ColumnRanges, DataFrameBatches, InputFiles, Versions
    from coordinator.sources.files.csv_files import CsvFiles
    from coordinator.sources.files.follow import Follow
    from coordinator.sources.files.line_files import JsonLines, TextFiles
    from coordinator.sources.files.parquet_files import ParquetFiles
    from coordinator.sources.micro_batches import MicroBatches
    from coordinator.sources.records.csv_fields import CsvFields
    from coordinator.sources.records.json_fields import JsonFields
    from coordinator.sources.records.plain_formats import FunctionFormat, PackedValues, TextLine
    from coordinator.sources.records.record_format import BadRecordError, RecordFormat
    from coordinator.sources.redis_streams.redis_streams import RedisStreams
    from coordinator.sources.several.inputs import Inputs, first

hand_on_lazily(__name__)

__all__ = [
    "BadRecordError",
    "Batches",
    "ColumnRanges",
    "CsvFields",
    "CsvFiles",
    "DEAD_LETTER_STREAM",
    "DataFrameBatches",
    "Follow",
    "FunctionFormat",
    "InputFiles",
    "Inputs",
    "JsonFields",
    "JsonLines",
    "MicroBatches",
    "PackedValues",
    "ParquetFiles",
    "RecordFormat",
    "RedisStreams",
    "TextFiles",
    "TextLine",
    "Versions",
    "first",
]
