"""Modules of jobs as people get them wrong, for the table of mistakes."""

from __future__ import annotations

JOBS = """
import os
import socket
import sys

from committers import ICommitter
from coordinated_bolt import BaseBasicBolt, BaseBatchBolt, CustomGrouping, IBatchBolt
from coordinator import FixedBatchesSpout, TextFiles, TransactionalTopologyBuilder
from coordinator import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state import FailedException, HashState, ListState, SetState

NOT_CALLABLE = 3


class Pass(BaseBatchBolt):
    output_fields = ("line",)

    def execute(self, tup):
        self.collector.emit(tup.values)


class Count(BaseBatchBolt, ICommitter):
    lines = HashState("lines")

    def execute(self, tup): ...

    def finish_batch(self): ...


def topology_of(committer, *, id="job", rows=(["one"], ["two"])):
    builder = TransactionalTopologyBuilder(id, "lines", FixedBatchesSpout([list(rows)] * 2, ["line"]))
    builder.set_bolt("store", committer).shuffle_grouping("lines")
    return builder.build()


def started(**options):
    return TransactionalTopologyBuilder("job", "lines", TextFiles("input.txt"), **options)


def sound(input="input.txt", lines_per_batch: int = 10, topology_id="job"):
    builder = TransactionalTopologyBuilder(topology_id, "lines", TextFiles(input, lines_per_batch))
    builder.set_bolt("store", Count()).shuffle_grouping("lines")
    return builder.build()


def needs(word):
    return sound()


def raises():
    return {}["input"]


def returns_nothing():
    sound()


def returns_a_builder():
    return started()


# how it is wired


def cycle():
    builder = started()
    builder.set_bolt("one", Pass()).shuffle_grouping("two")
    builder.set_bolt("two", Pass()).shuffle_grouping("one")
    return builder.build()


def unknown_component():
    builder = started()
    builder.set_bolt("one", Pass()).shuffle_grouping("line")
    return builder.build()


def unknown_stream():
    builder = started()
    builder.set_bolt("one", Pass()).shuffle_grouping("lines", "errors")
    return builder.build()


def unknown_field():
    builder = started()
    builder.set_bolt("one", Pass()).fields_grouping("lines", ["word"])
    return builder.build()


def fields_as_text():
    builder = started()
    builder.set_bolt("one", Pass()).fields_grouping("lines", "line")
    return builder.build()


def no_input():
    builder = started()
    builder.set_bolt("one", Pass())
    return builder.build()


class Misspelled(BaseBatchBolt):
    def excute(self, tup): ...


def misspelled():
    builder = started()
    builder.set_bolt("one", Misspelled()).shuffle_grouping("lines")
    return builder.build()


def used_twice():
    builder = started()
    builder.set_bolt("lines", Pass()).shuffle_grouping("lines")
    return builder.build()


def subscribed_twice():
    builder = started()
    builder.set_bolt("one", Pass()).shuffle_grouping("lines").all_grouping("lines")
    return builder.build()


def class_for_object():
    builder = started()
    builder.set_bolt("one", Pass).shuffle_grouping("lines")
    return builder.build()


def grouping_class():
    builder = started()
    builder.set_bolt("one", Pass()).custom_grouping("lines", CustomGrouping)
    return builder.build()


def no_spout():
    return TransactionalTopologyBuilder("job", "lines", ["a line"])


def no_tasks():
    return started(parallelism=0)


def no_time():
    builder = started()
    builder.set_message_timeout_s(-1)
    return builder.build()


class Basic(BaseBasicBolt):
    def execute(self, tup, collector): ...


def basic_committer():
    builder = started()
    builder.set_committer_bolt("one", Basic()).shuffle_grouping("lines")
    return builder.build()


class Writes(Pass):
    lines = HashState("lines")


def state_outside_a_committer():
    builder = started()
    builder.set_bolt("one", Writes()).shuffle_grouping("lines")
    return builder.build()


def state_of_two():
    builder = started()
    builder.set_bolt("one", Count()).shuffle_grouping("lines")
    builder.set_bolt("two", Count()).shuffle_grouping("lines")
    return builder.build()


def state_of_lists():
    HashState("lines", value=list)


def state_with_a_colon():
    HashState("a:b")


class Sends(Pass):
    def __init__(self):
        connection = socket.socket()
        self.send = lambda data: connection.send(data)
        connection.close()


def socket_in_a_bolt():
    builder = started()
    builder.set_bolt("one", Sends()).shuffle_grouping("lines")
    return builder.build()


class Huge(Pass):
    def __init__(self):
        self.model = os.urandom(9 * 1024 * 1024)


def huge_bolt():
    builder = started()
    builder.set_bolt("one", Huge()).shuffle_grouping("lines")
    return builder.build()


# what it does when it runs


class Raises(Count):
    def execute(self, tup):
        int(tup["line"])


def execute_raises():
    return topology_of(Raises())


class RaisesFirst(Count):
    def prepare(self, conf, context, collector, attempt):
        self.limit = conf["limit"]


def prepare_raises():
    return topology_of(RaisesFirst())


class RaisesLast(Count):
    def finish_batch(self):
        1 / 0


def finish_raises():
    return topology_of(RaisesLast())


class RaisesAfterwards(Count):
    def cleanup(self):
        self.attempt.close()


def cleanup_raises():
    return topology_of(RaisesAfterwards())


class Draws(Count):
    def execute(self, tup):
        raise ValueError("\\x1b[2J\\x1b[31mdone\\r" + "x" * 100_000)


def message_draws():
    return topology_of(Draws())


class WithoutSuper(Pass):
    def prepare(self, conf, context, collector, attempt):
        self.seen = 0

    def execute(self, tup):
        self.collector.emit([tup["line"]])


def prepare_without_super():
    return topology_of(WithoutSuper())


class Undeclared(Count):
    def finish_batch(self):
        self.words.increment("a")


def state_not_declared():
    return topology_of(Undeclared())


class MadeLate(Count):
    def finish_batch(self):
        HashState("words").increment("a")


def state_made_in_finish_batch():
    return topology_of(MadeLate())


class MadeInInit(Count):
    def __init__(self):
        self.words = HashState("words")

    def finish_batch(self):
        self.words.increment("a")


def state_made_in_init():
    return topology_of(MadeInInit())


class WritesEarly(Count):
    def execute(self, tup):
        self.lines.increment("a")


def state_in_execute():
    return topology_of(WritesEarly())


class WrongType(Count):
    def finish_batch(self):
        self.lines.put("a", "one")


def text_for_an_integer():
    return topology_of(WrongType())


class WrongField(Count):
    def finish_batch(self):
        self.lines.increment(3)


def integer_for_a_field():
    return topology_of(WrongField())


class TooMuch(Count):
    def finish_batch(self):
        self.lines.put("a", 2**53)


def beyond_the_range():
    return topology_of(TooMuch())


class Always(Count):
    def finish_batch(self):
        raise FailedException("the other service is down")


def always_fails():
    return topology_of(Always())


class Emits(Pass):
    def __init__(self, values, stream="default"):
        self.values, self.stream = values, stream

    def execute(self, tup):
        self.collector.emit(self.values, self.stream)


def two_values_for_one_field():
    return chained(Emits(["a", "b"]))


def text_for_a_row():
    return chained(Emits("a"))


def number_for_a_row():
    return chained(Emits(3))


def stream_not_declared():
    return chained(Emits(["a"], "errors"))


def value_that_cannot_travel():
    return chained(Emits([object()]))


def chained(bolt):
    builder = TransactionalTopologyBuilder("job", "lines", FixedBatchesSpout([[["one"]]], ["line"]))
    builder.set_bolt("middle", bolt).shuffle_grouping("lines")
    builder.set_bolt("store", Count()).shuffle_grouping("middle")
    return builder.build()


class WrongName(Count):
    def execute(self, tup):
        tup["word"]


def field_not_there():
    return topology_of(WrongName())


class Leaves(Count):
    def execute(self, tup):
        sys.exit("no more of this")


def bolt_leaves():
    return topology_of(Leaves())


class Late(Pass):
    kept = []

    def finish_batch(self):
        self.kept.append(self.collector)
        for collector in self.kept[:-1]:
            collector.emit(["late"])


def emits_late():
    builder = TransactionalTopologyBuilder("job", "lines", FixedBatchesSpout([[["one"]]] * 2, ["line"]))
    builder.set_bolt("middle", Late()).shuffle_grouping("lines")
    builder.set_bolt("store", Count()).shuffle_grouping("middle")
    return builder.build()


class BrokenSpout(ITransactionalSpout):
    output_fields = ("line",)

    def get_coordinator(self, conf, context):
        return BrokenCoordinator()

    def get_emitter(self, conf, context):
        return SpoutEmitter()

    def fingerprint(self):
        return "broken"


class BrokenCoordinator(SpoutCoordinator):
    def is_ready(self):
        return True

    def initialize_transaction(self, txid, previous):
        return open("/no/such/list").read()


def spout_raises():
    builder = TransactionalTopologyBuilder("job", "lines", BrokenSpout())
    builder.set_bolt("store", Count()).shuffle_grouping("lines")
    return builder.build()
"""

PLAIN = """
from coordinated_bolt import BaseBasicBolt, BaseSpout
from coordinator import TopologyBuilder


class Lines(BaseSpout):
    output_fields = ("line",)

    def next_tuple(self): ...


class Sink(BaseBasicBolt):
    def execute(self, tup, collector): ...


def topology():
    builder = TopologyBuilder("plain")
    builder.set_spout("lines", Lines())
    builder.set_bolt("sink", Sink()).shuffle_grouping("lines")
    return builder.build()
"""

OTHER_MODULES = {
    "raising.py": "import json\n\njson.loads('{')\n",
    "leaving.py": "import sys\n\nsys.exit('usage: leaving')\n",
    "torn.py": "def topology(:\n",
    "hungry.py": "import numpie\n",
    "my-job.py": "",
    "json.py": "",
    "plain_job.py": PLAIN,
    "jobs.py": JOBS,
}
