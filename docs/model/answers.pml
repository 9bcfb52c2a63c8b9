/* What answers make of a run: it takes the topology over, goes on, releases, or ends. */


inline end_run(own) {
  own.stage = 0; own.fence = 0; own.since = 0; own.nonce = 0; own.generation = 0; own.revision = 0; own.committed = 0;
  own.epoch = 0; own.has_raced = false;
  for (one : 0 .. CELLS - 1) {
    own.metadata[one] = 0
  }
  for (one : 0 .. TXIDS) {
    own.attempt[one] = 0; own.is_processed[one] = false; own.early_attempt[one] = 0
  }
  own.told = 0; own.released = 0; own.asked = 0; own.has_written = false;
  for (one : 0 .. SPOTS - 1) {
    own.from[one] = 0; own.until[one] = 0; own.early_from[one] = 0; own.early_until[one] = 0
  }
  clear_call(own.call)
}

/* The attempts that need no cutting are issued at once; those whose batches are known are processed at once. */
inline issue_known(own) {
#ifndef OPAQUE
  for (one : own.committed + 1 .. TXIDS) {
    if
    :: !own.attempt[one] && one <= own.committed + WINDOW && own.metadata[CELL(SCOPE(PARTITIONS - 1), one)] ->
      issue(own, one);
      own.is_processed[one] = true
    :: else
    fi
  }
#else
  skip
#endif
}

inline began(own) {
  if
  :: reply == OK ->
    take_over_from(own, server);
    find_hole(own);
#ifdef HOLES_ACCEPTED
    has_hole = false;
#endif
    assert(!has_hole);
    go_on(own)
  :: reply == RACED ->
    own.has_raced = true;
    clear_call(own.call);
    draw_names();
#ifndef ONE_TOKEN_FOR_ALL_TRIES
    own.nonce = new_nonce; /* the first request may still arrive */
#endif
    make_acquire(own, server, new_generation)
  :: else -> end_run(own)
  fi
}

inline go_on(own) {
  clear_call(own.call);
  own.stage = IDLE;
  issue_known(own)
}

inline answered(own) {
  if
  :: own.call.kind == ACQUIRE -> began(own)
  :: own.call.kind == CONFIRM ->
    if
    :: reply == OK ->
      assert(server.committed == own.committed); /* done is done */
#ifdef DURABLE
      assert(upstream == own.committed);         /* and nothing is left untold */
#endif
      is_done = true
    :: else
    fi;
    end_run(own)
  :: own.call.kind == METADATA && IS_WRITTEN ->
    accept_metadata(own);
    own.revision++;
    go_on(own)
  :: own.call.kind == COMMIT && IS_WRITTEN ->
    assert(server.receipt[own.call.last] == own.call.attempt[own.call.last]); /* what it takes for committed is its own */
    assert(server.committed == own.call.last);
    accept_metadata(own);
    end_commit(own);
    own.revision++;
#ifdef RELEASED_AT_ONCE
    own.asked = own.committed;
    tell(own);
#endif
    go_on(own)
  :: own.call.kind == BARRIER && IS_WRITTEN ->
    own.revision++;
    own.asked = own.call.last;
    own.has_written = true;
    go_on(own)
  :: reply == REFUSED && own.call.first < own.call.last -> go_on(own) /* a smaller group is tried, Commits.refused */
  :: else ->
#ifdef TEARS
    is_done = is_done || (is_damaged && reply == TORN); /* it is for people to repair now */
#endif
    end_run(own)
  fi
}

/* The spout's committer hears of everything up to the barrier. */
inline tell(own) {
  assert(own.told <= upstream);                  /* nothing between is left untold */
  release(own);
  upstream = (own.told > upstream -> own.told : upstream);
  printf("run %d: tells %d\n", own.nonce, own.told)
}

/* The server has what the run wrote, and will not lose it: of what it may go back to, only what came later is left. */
inline make_durable(own) {
  if
  :: own.has_written && kept_count == 2 && kept[0].revision < own.revision ->
    copy_server(kept[0], kept[1]);
    copy_server(kept[1], nothing);
    kept_count = 1
  :: else
  fi;
  if
  :: own.has_written && kept_count == 1 && kept[0].revision < own.revision ->
    copy_server(kept[0], nothing);
    kept_count = 0
  :: else
  fi
}
