"""Five of the jobs in this folder once more, in the short form: the same state from a fifth of the lines.

Each function makes the topology of the example of that name, and leaves what that one leaves. Run one::

    python examples/top_k.py orders
    txbatch run examples/short_forms.py:top_k -p input='orders/*.csv'

What the short form has no word for stays a class: visits, which end after half an hour, and balances that must not
become negative.
"""

from coordinator import CsvFiles, HashState, JsonLines, SetState, SortedSetState, TextFiles, stream
from examples.clickstream import DAY_S, EVENT, CountVisits, date_of
from examples.dedupe import PAYMENT
from examples.ledger import TRANSFER, KeepBalances
from examples.top_k import ORDER, K


def word_count(input, lines_per_batch=1000, topology_id="word_count"):
    words = stream(TextFiles(input, lines_per_batch)).flat_map(str.split, to="word")
    return words.count_by("word", into=HashState("counts")).topology(topology_id)


def clickstream(input, lines_per_batch=10_000, topology_id="clickstream"):
    events = stream(JsonLines(input, EVENT, lines_per_batch))
    days = events.key_by(lambda ts: date_of(ts // DAY_S), to="day", of="ts")
    days.count_by("page", into=SortedSetState("views").per("day"))
    events.commit(CountVisits(), by="user")
    return events.topology(topology_id)


def top_k(input, rows_per_batch=1000, topology_id="top_k"):
    orders = stream(CsvFiles(input, ORDER, rows_per_batch))
    orders.sum_by("product", "units", into=SortedSetState("best_sellers"))
    orders.top(K, "order", by="cents", into=SortedSetState("largest_orders"))
    return orders.topology(topology_id)


def dedupe(input, lines_per_batch=1000, topology_id="dedupe", parallelism=2):
    payments = stream(JsonLines(input, PAYMENT, lines_per_batch), parallelism=parallelism)
    delivered = payments.distinct_by("id", into=SetState("seen"), to="is_first")
    first = delivered.filter(bool, of="is_first")
    first.sum_by("customer", "cents", into=HashState("cents"))
    kinds = delivered.map(lambda is_first: "first" if is_first else "repeated", to="kind", of="is_first")
    kinds.count_by("kind", into=HashState("deliveries"))
    return payments.topology(topology_id, parallelism=parallelism)


def ledger(input, lines_per_batch=1000, topology_id="ledger", parallelism=None):
    source = JsonLines(input, TRANSFER, lines_per_batch, on_bad_record="dead_letter")
    transfers = stream(source, "transfers", parallelism)
    paying = transfers.dead_letter_if(
        lambda cents: cents <= 0, lambda cents: f"a transfer of {cents} cents", of="cents"
    )
    checked = paying.dead_letter_if(
        lambda source, target: source == target,
        lambda source, _: f"a transfer from {source} to itself",
        of=["source", "target"],
    )
    checked.commit(KeepBalances(), name="balances")
    return transfers.topology(topology_id, parallelism=parallelism)
