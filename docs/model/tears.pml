/* A torn write: the server goes back to before it, but its first commands lie in the file, in front of what follows.
   At the next start they are applied under all that was written since, if anything was. Of the half, only what no later
   write has set again is left in `half`. */
#ifdef TEARS
Call written;      /* the write that followed kept[0] */
Server after;      /* and what it has left */
Call half;
Server halved;
byte half_length;  /* how many kinds of commands: the count, states, metadata */
bool is_followed;
bool is_damaged;

inline tear() {
  if
  :: is_torn && written.kind -> copy_call(half, written); copy_server(halved, after); half_length = is_torn; is_followed = false
  :: else -> clear_call(half); half_length = 0
  fi;
  clear_call(written);
  copy_server(after, nothing)
}

/* A later write sets what it sets, whatever lies before it. */
inline follow_half(req) {
  is_followed = true;
  for (one : 0 .. CELLS - 1) {
    half.change[one] = (req.change[one] -> 0 : half.change[one])
  }
  for (one : 0 .. PARTITIONS - 1) {
    half.rows[one] = (req.rows[one] -> 0 : half.rows[one])
  }
}

inline apply_half() {
  server.begun++;
  is_damaged = true;
  for (one : 0 .. PARTITIONS - 1) {
    server.seen[one] = (half_length > 1 && half.rows[one] -> halved.seen[one] : server.seen[one])
  }
  for (one : 0 .. CELLS - 1) {
    server.metadata[one] = (half_length > 2 && half.change[one] -> halved.metadata[one] : server.metadata[one])
  }
  clear_call(half);
  copy_server(halved, nothing);
  half_length = 0;
  is_followed = false
}
hidden byte is_torn;
#endif
