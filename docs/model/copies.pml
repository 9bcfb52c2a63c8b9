/* Servers and calls, field by field: Promela copies no structure as a whole. */

inline copy_server(to, given) {
  to.generation = given.generation; to.fence = given.fence; to.since = given.since; to.nonce = given.nonce;
  to.revision = given.revision; to.last_call = given.last_call; to.committed = given.committed; to.told = given.told; to.begun = given.begun;
  to.ended = given.ended; to.dropping = given.dropping; to.source = given.source; to.topology = given.topology;
  for (one : 0 .. CELLS - 1) {
    to.metadata[one] = given.metadata[one]
  }
  for (one : 0 .. TXIDS) {
    to.receipt[one] = given.receipt[one];
    to.group[one] = given.group[one];
    to.aside[one] = given.aside[one]
  }
  for (one : 0 .. PARTITIONS - 1) {
    to.seen[one] = given.seen[one]
  }
}

inline clear_call(req) {
  req.kind = 0; req.fence = 0; req.since = 0; req.owner = 0; req.nonce = 0; req.generation = 0; req.revision = 0; req.digest = 0;
  req.source = 0; req.topology = 0; req.accepted_source = 0; req.accepted_topology = 0; req.first = 0; req.last = 0; req.told = 0;
  req.aside_limit = 0; req.record = 0; req.taken = 0; req.number = 0; req.is_refused = false;
  for (one : 0 .. CELLS - 1) {
    req.change[one] = 0
  }
  for (one : 0 .. TXIDS) {
    req.attempt[one] = 0
  }
  for (one : 0 .. PARTITIONS - 1) {
    req.rows[one] = 0; req.from[one] = 0; req.until[one] = 0
  }
}

inline copy_call(to, given) {
  to.kind = given.kind; to.fence = given.fence; to.since = given.since; to.owner = given.owner;
  to.nonce = given.nonce; to.generation = given.generation; to.revision = given.revision; to.digest = given.digest; to.source = given.source;
  to.topology = given.topology; to.accepted_source = given.accepted_source;
  to.accepted_topology = given.accepted_topology; to.first = given.first; to.last = given.last; to.told = given.told;
  to.aside_limit = given.aside_limit; to.record = given.record; to.taken = given.taken; to.number = given.number;
  to.is_refused = given.is_refused;
  for (one : 0 .. CELLS - 1) {
    to.change[one] = given.change[one]
  }
  for (one : 0 .. TXIDS) {
    to.attempt[one] = given.attempt[one]
  }
  for (one : 0 .. PARTITIONS - 1) {
    to.rows[one] = given.rows[one]; to.from[one] = given.from[one]; to.until[one] = given.until[one]
  }
}
