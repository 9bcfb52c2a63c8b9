/* Books: what has to hold after every call -------------------------------------------------------------------------- */

#ifdef QUARANTINE
#define ROWS_OF(record) ((record) -> (record) - 1 : 0)
#define SET_ASIDE(srv) (ROWS_OF(srv.aside[1]) + ROWS_OF(srv.aside[2]) + ROWS_OF(srv.aside[3]))
#else
#define SET_ASIDE(srv) 0
#endif

inline check_books(req) {
  is_change = server.revision != before.revision || server.nonce != before.nonce ||
    server.generation != before.generation || server.dropping != before.dropping;
  if
  :: reply == OK && req.kind == COMMIT ->
    for (one : 0 .. PARTITIONS - 1) {
      assert(before.seen[one] + SET_ASIDE(before) == req.from[one]); /* nothing is doubled, nothing is lost */
      assert(server.seen[one] + SET_ASIDE(server) == req.until[one]) /* what was added is what lies between */
    }
    for (one : req.first .. req.last) {
      assert(!before.receipt[one] || before.receipt[one] == server.receipt[one]) /* a receipt never changes */
    }
  :: reply != OK && reply != ALREADY ->          /* what is refused changes nothing */
    assert(!is_change && server.seen[0] == before.seen[0] && (server.begun == server.ended) == (before.begun == before.ended))
  :: else
  fi;
#ifdef TEARS
  assert(!is_damaged || reply != OK);               /* nobody builds on half a write, or is told that all is well */
#endif
  assert(!is_change || !server.generation || server.committed >= before.committed);
#ifndef OPAQUE
#ifdef TEARS
  assert(is_damaged || !server.committed || server.metadata[CELL(0, server.committed)])
#else
  assert(!server.committed || server.metadata[CELL(0, server.committed)])
#endif
#endif
}
