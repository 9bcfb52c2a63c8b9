"""Modules of jobs as people get them wrong, for the table of mistakes."""

from __future__ import annotations

from tests.support.cli.jobs import PLAIN_JOB

JOBS = """
import os
import socket
import sys

from committers import ICommitter
from coordinated_bolt import BaseBasicBolt, BaseBatchBolt, CustomGrouping
from coordinator import FixedBatchesSpout, TextFiles, TransactionalTopologyBuilder
from coordinator import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state import FailedException, HashState

NOT_CALLABLE = 3

class Pass(BaseBatchBolt):
    output_fields = ("line",)

    def execute(self, tup):
        self.collector.emit(tup.values)

class Count(BaseBatchBolt, ICommitter):
    lines = HashState("lines")

    def execute(self, tup): ...

    def finish_batch(self): ...

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

# a factory whose builder each of `wirings` is given
def wired(*wirings, **options):
    def factory():
        builder = started(**options)
        for wire in wirings:
            wire(builder)
        return builder.build()
    return factory

# a factory that feeds a bolt from the spout, once for each id
def fed(bolt, *ids):
    return wired(*(lambda builder, id=id: builder.set_bolt(id, bolt()).shuffle_grouping("lines") for id in ids))

class Misspelled(BaseBatchBolt):
    def excute(self, tup): ...

class Basic(BaseBasicBolt):
    def execute(self, tup, collector): ...

class Writes(Pass):
    lines = HashState("lines")

class Sends(Pass):
    def __init__(self):
        connection = socket.socket()
        self.send = lambda data: connection.send(data)
        connection.close()

class Huge(Pass):
    def __init__(self):
        self.model = os.urandom(9 * 1024 * 1024)

cycle = wired(
    lambda builder: builder.set_bolt("one", Pass()).shuffle_grouping("two"),
    lambda builder: builder.set_bolt("two", Pass()).shuffle_grouping("one"),
)
unknown_component = wired(lambda builder: builder.set_bolt("one", Pass()).shuffle_grouping("line"))
unknown_stream = wired(lambda builder: builder.set_bolt("one", Pass()).shuffle_grouping("lines", "errors"))
unknown_field = wired(lambda builder: builder.set_bolt("one", Pass()).fields_grouping("lines", ["word"]))
fields_as_text = wired(lambda builder: builder.set_bolt("one", Pass()).fields_grouping("lines", "line"))
no_input = wired(lambda builder: builder.set_bolt("one", Pass()))
misspelled = fed(Misspelled, "one")
used_twice = fed(Pass, "lines")
subscribed_twice = wired(lambda builder: builder.set_bolt("one", Pass()).all_grouping("lines").all_grouping("lines"))
class_for_object = wired(lambda builder: builder.set_bolt("one", Pass).shuffle_grouping("lines"))
grouping_class = wired(lambda builder: builder.set_bolt("one", Pass()).custom_grouping("lines", CustomGrouping))
no_tasks = wired(parallelism=0)
no_time = wired(lambda builder: builder.set_message_timeout_s(-1))
basic_committer = wired(lambda builder: builder.set_committer_bolt("one", Basic()).shuffle_grouping("lines"))
state_outside_a_committer = fed(Writes, "one")
state_of_two = fed(Count, "one", "two")
socket_in_a_bolt = fed(Sends, "one")
huge_bolt = fed(Huge, "one")

def no_spout():
    return TransactionalTopologyBuilder("job", "lines", ["a line"])

def state_of_lists():
    HashState("lines", value=list)

def state_with_a_colon():
    HashState("a:b")

# what it does when it runs

class Draws(Count):
    def execute(self, tup):
        raise ValueError("\\x1b[2J\\x1b[31mdone\\r" + "x" * 100_000)

class WithoutSuper(Pass):
    def prepare(self, conf, context, collector, attempt):
        self.seen = 0

    def execute(self, tup):
        self.collector.emit([tup["line"]])

class Undeclared(Count):
    def finish_batch(self):
        self.words.increment("a")

class MadeInInit(Count):
    def __init__(self):
        self.words = HashState("words")

    def finish_batch(self):
        self.words.increment("a")

class Always(Count):
    def finish_batch(self):
        raise FailedException("the other service is down")

class Emits(Pass):
    def __init__(self, values, stream="default"):
        self.values, self.stream = values, stream

    def execute(self, tup):
        self.collector.emit(self.values, self.stream)

class Late(Pass):
    kept = []

    def finish_batch(self):
        self.kept.append(self.collector)
        for collector in self.kept[:-1]:
            collector.emit(["late"])

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

# a factory of a spout, perhaps a bolt in the middle, and a committer, of which some methods may be others
def storing(store=Count, middle=None, spout=None, **methods):
    def factory():
        lines = FixedBatchesSpout([[["one"], ["two"]]] * 2, ["line"])
        builder = TransactionalTopologyBuilder("job", "lines", spout() if spout else lines)
        if middle is not None:
            builder.set_bolt("middle", middle).shuffle_grouping("lines")
        faulty = type("Faulty", (store,), methods)() if methods else store()
        builder.set_bolt("store", faulty).shuffle_grouping("lines" if middle is None else "middle")
        return builder.build()
    return factory

execute_raises = storing(execute=lambda self, tup: int(tup["line"]))
prepare_raises = storing(prepare=lambda self, conf, context, collector, attempt: conf["limit"])
finish_raises = storing(finish_batch=lambda self: 1 / 0)
cleanup_raises = storing(cleanup=lambda self: self.attempt.close())
message_draws = storing(Draws)
prepare_without_super = storing(WithoutSuper)
state_not_declared = storing(Undeclared)
state_made_in_finish_batch = storing(finish_batch=lambda self: HashState("words").increment("a"))
state_made_in_init = storing(MadeInInit)
state_in_execute = storing(execute=lambda self, tup: self.lines.increment("a"))
text_for_an_integer = storing(finish_batch=lambda self: self.lines.put("a", "one"))
integer_for_a_field = storing(finish_batch=lambda self: self.lines.increment(3))
beyond_the_range = storing(finish_batch=lambda self: self.lines.put("a", 2**53))
always_fails = storing(Always)
field_not_there = storing(execute=lambda self, tup: tup["word"])
bolt_leaves = storing(execute=lambda self, tup: sys.exit("no more of this"))
two_values_for_one_field = storing(middle=Emits(["a", "b"]))
text_for_a_row = storing(middle=Emits("a"))
number_for_a_row = storing(middle=Emits(3))
stream_not_declared = storing(middle=Emits(["a"], "errors"))
value_that_cannot_travel = storing(middle=Emits([object()]))
emits_late = storing(middle=Late())
spout_raises = storing(spout=BrokenSpout)
"""
OTHER_MODULES = {
    "raising.py": "import json\n\njson.loads('{')\n",
    "leaving.py": "import sys\n\nsys.exit('usage: leaving')\n",
    "torn.py": "def topology(:\n",
    "hungry.py": "import numpie\n",
    "my-job.py": "",
    "json.py": "",
    "plain_job.py": PLAIN_JOB,
    "jobs.py": JOBS,
}
