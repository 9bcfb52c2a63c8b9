/* A run's rules: what the run machine and the store decide between calls.

   Each rule names the function that it stands for. A batch is what lies between `from`, where its attempt began to
   read a partition, and `until`, its position. */

#define SPOT(txid, partition) ((txid) * PARTITIONS + (partition))
#define SPOTS ((TXIDS + 1) * PARTITIONS)
#ifdef PARTITIONED
#define SCOPE(partition) ((partition) + 1) /* scope 0 is the coordinator's: how many partitions there are */
#else
#define SCOPE(partition) (partition)       /* PLAIN: the coordinator's metadata is the position; OPAQUE: it is not used */
#endif
#define KEPT(position) ((position) + 1)    /* as metadata, where 0 is absent */

mtype = { LOOKED, IDLE, SENT };

typedef Run {
  mtype stage;             /* 0: there is no run */
  NUMBER fence;
  NUMBER since;
  NUMBER nonce;
  NUMBER generation;
  NUMBER revision;         /* that its next call expects */
  NUMBER committed;
  bool has_raced;          /* another run was quicker to take over */
  NUMBER epoch;            /* raised by every failure: attempts issued later are others */
  NUMBER attempt[TXIDS + 1]; /* the current one; 0: there is none */
  bool is_processed[TXIDS + 2];
  NUMBER metadata[CELLS];  /* as it believes it is stored */
  NUMBER from[SPOTS];
  NUMBER until[SPOTS];
  NUMBER early_attempt[TXIDS + 1]; /* the commit phase ran with the wave for this attempt */
  NUMBER early_from[SPOTS];        /* of the rows that it counted */
  NUMBER early_until[SPOTS];
  NUMBER told;             /* last txid that the spout's committer has heard of */
  NUMBER released;         /* last txid that is as durable as was asked for */
  NUMBER asked;            /* the barrier that is out speaks for everything up to it; 0: none is out */
  bool has_written;        /* on the connection that the barrier's question is asked on */
  Call call;               /* that was sent, and is repeated until it is answered */
}

hidden COUNTER txid;
hidden COUNTER part;
hidden COUNTER last;

/* store.py: RedisStore._write, RedisStore._owned_reply: what every call of the owner carries */
inline make_call(own, which) {
  own.call.kind = which;
  own.call.fence = own.fence;
  own.call.since = own.since;
  own.call.owner = own.nonce;
  own.call.generation = own.generation;
  own.call.revision = own.revision;
  own.stage = SENT
}

/* store.py: RedisStore.acquire; the previous fence is the one that was looked at, or that RACED has answered */
inline make_acquire(own, srv, new_generation) {
  own.call.kind = ACQUIRE;
  own.call.fence = srv.fence;
  own.call.since = srv.since;
  own.call.owner = srv.nonce;
  own.call.nonce = own.nonce;
  own.call.generation = new_generation;
  own.stage = SENT
}

/* store.py: RedisStore._acquired; positions.py: Positions.by_scope */
inline take_over_from(own, srv) {
  own.fence = srv.fence;
  own.since = srv.since;
  own.generation = srv.generation;
  own.revision = srv.revision;
  own.committed = srv.committed;
  own.told = (srv.committed -> UNTOLD_FROM(srv) - 1 : 0);
  own.released = own.told;
  for (at : 0 .. CELLS - 1) {
    own.metadata[at] = srv.metadata[at]
  }
  for (part : 0 .. PARTITIONS - 1) {
    last = 0;
    for (txid : 0 .. TXIDS) {
      if
      :: own.metadata[CELL(SCOPE(part), txid)] ->
        own.from[SPOT(txid, part)] = (txid > own.committed -> last : 0);
        last = own.metadata[CELL(SCOPE(part), txid)] - 1;
        own.until[SPOT(txid, part)] = last
      :: else -> own.until[SPOT(txid, part)] = (txid == own.committed -> last : 0)
      fi
    }
  }
}

/* input_checks.py: check_coordinator_metadata, check_partition_metadata: whether metadata is missing below some that
   is stored, or that of the last committed txid */
inline find_hole(own) {
  has_hole = false;
#ifndef OPAQUE
  for (part : 0 .. SCOPES - 1) {
    last = own.committed;
    for (txid : 1 .. TXIDS) {
      last = (own.metadata[CELL(part, txid)] && txid > last -> txid : last)
    }
    for (txid : 1 .. TXIDS) {
      has_hole = has_hole || (txid >= own.committed && txid <= last && !own.metadata[CELL(part, txid)])
    }
  }
#endif
}
hidden COUNTER has_hole;

/* transaction_records.py: TransactionRecords.issue; an attempt is never issued twice */
inline issue(own, which) {
  own.attempt[which] = own.nonce * EPOCHS + own.epoch
}

/* cutting.py: Cutting._continue: whether a txid is in the window and must be cut */
#define MAY_CUT(own, t) ((t) <= TXIDS && (t) <= own.committed + WINDOW)

/* failures.py: Failures._lose: an attempt that fails is dropped, and with it all later ones */
inline fail(own, first) {
  own.epoch++;
#ifdef FAILURE_DROPS_ITSELF_ONLY
  for (txid : first .. first) {
#else
  for (txid : first .. TXIDS) {
#endif
    own.attempt[txid] = 0;
    own.is_processed[txid] = false;
#ifndef EARLY_GROUP_KEPT
    own.early_attempt[txid] = 0
#endif
  }
}

/* early_commits.py: EarlyCommits.keep: what the commit phase reports that ran with the wave of an attempt */
inline keep_early(own, which) {
#ifdef EARLY_GROUP_KEPT
  if
  :: own.early_attempt[which]
  :: else ->
#endif
    own.early_attempt[which] = own.attempt[which];
    for (part : 0 .. PARTITIONS - 1) {
      own.early_from[SPOT(which, part)] = own.from[SPOT(which, part)];
      own.early_until[SPOT(which, part)] = own.until[SPOT(which, part)]
    }
#ifdef EARLY_GROUP_KEPT
  fi
#endif
}

/* early_commits.py: EarlyCommits.take: only of exactly these attempts; else the commit phase runs now */
#ifdef EARLY_GROUP_KEPT
#define IS_EARLY(own, which) own.early_attempt[which]
#else
#define IS_EARLY(own, which) (own.early_attempt[which] == own.attempt[which])
#endif

/* releases.py: Releases.notified_txid; as it is stored */
#ifdef TOLD_LEFT_OUT
#define TOLD(own) 0
#else
#define TOLD(own) (own.told == own.committed -> 0 : own.told + 1)
#endif

/* releases.py: Releases.due: one barrier at a time, if something is not confirmed */
#define MAY_ASK(own) (!own.asked && own.released < own.committed)

/* barrier.py: Barrier.answer: on another connection the write is made again before anything is asked */
#ifdef BARRIER_ASKS_WITHOUT_WRITING
#define MAY_CONFIRM(own) own.asked
#else
#define MAY_CONFIRM(own) (own.asked && own.has_written)
#endif

/* releases.py: Releases.confirmed, Releases.notified */
inline release(own) {
  own.released = own.asked;
  own.asked = 0;
  own.told = own.released
}

/* commits.py: Commits._publish; metadata_log.py: MetadataLog.commit_changes. The last metadata of each scope up to the
   group's last txid is kept. */
inline make_commit(own, end) {
  make_call(own, COMMIT);
  own.call.first = own.committed + 1;
  own.call.last = end;
  own.call.digest = DIGEST(2, own.call.first, end, own.epoch);
  for (txid : own.call.first .. end) {
    own.call.attempt[txid] = own.attempt[txid];
    for (part : 0 .. PARTITIONS - 1) {
      own.call.rows[part] = own.call.rows[part] + (IS_EARLY(own, txid) ->
        own.early_until[SPOT(txid, part)] - own.early_from[SPOT(txid, part)] :
        own.until[SPOT(txid, part)] - own.from[SPOT(txid, part)])
    }
  }
  own.call.told = TOLD(own);
  for (part : 0 .. PARTITIONS - 1) {
    own.call.from[part] = own.from[SPOT(own.call.first, part)];
    own.call.until[part] = own.until[SPOT(end, part)];
#ifdef OPAQUE
    own.call.change[CELL(SCOPE(part), end)] = KEPT(own.until[SPOT(end, part)])
#endif
  }
  forget_outdated(own, end)
}

/* metadata_log.py: MetadataLog._outdated: the last metadata of each scope up to the group's last txid is kept */
inline forget_outdated(own, end) {
  for (part : 0 .. SCOPES - 1) {
    last = 0;
    for (txid : 0 .. end) {
      last = (own.metadata[CELL(part, txid)] || own.call.change[CELL(part, txid)] -> txid : last)
    }
    for (txid : 0 .. end) {
      if
#ifdef METADATA_CLEANED_ONE_TOO_FAR
      :: own.metadata[CELL(part, txid)] && txid <= last -> own.call.change[CELL(part, txid)] = FORGET
#else
      :: own.metadata[CELL(part, txid)] && txid < last -> own.call.change[CELL(part, txid)] = FORGET
#endif
      :: else
      fi
    }
  }
}

/* quarantining.py: Quarantining.set_aside: the batch is given up; its commit holds nothing but its record */
inline make_set_aside(own, as, rows_of_batch) {
  make_commit(own, as);
  own.call.rows[0] = 0;
  own.call.record = KEPT(rows_of_batch);
  own.call.aside_limit = ASIDE_MAX + 1;
  own.call.digest = own.call.digest + 128
}

/* republished_input.py: RepublishedInput.cut; metadata_log.py: MetadataLog.carried_to: a quarantined batch is the next
   transaction; the one after it is cut from where the one before it ended */
inline make_republished(own, which, as, rows_of_batch) {
  own.attempt[as] = own.nonce * EPOCHS + own.epoch;
  own.from[SPOT(as, 0)] = own.until[SPOT(own.committed, 0)];
  own.until[SPOT(as, 0)] = own.until[SPOT(own.committed, 0)];
  make_commit(own, as);
  own.call.rows[0] = rows_of_batch;
  own.call.change[CELL(0, as)] = KEPT(own.until[SPOT(own.committed, 0)]);
#ifndef REPUBLISHED_NOT_TAKEN
  own.call.taken = which
#endif
}

/* commits.py: Commits.published; metadata_log.py: MetadataLog.committed */
inline end_commit(own) {
  for (txid : 0 .. own.call.last) {
    own.attempt[txid] = 0;
    own.is_processed[txid] = false;
    own.early_attempt[txid] = 0;
    for (part : 0 .. PARTITIONS - 1) {
      own.from[SPOT(txid, part)] = 0;
      own.early_from[SPOT(txid, part)] = 0;
      own.early_until[SPOT(txid, part)] = 0;
      own.until[SPOT(txid, part)] = (txid == own.call.last -> own.until[SPOT(txid, part)] : 0)
    }
  }
  own.committed = own.call.last
}

/* store.py: RedisStore._write: a write that was answered by either of these is the next revision */
#define IS_WRITTEN (reply == OK || reply == ALREADY)

/* metadata.py: TransactionalState.put, TransactionalState.remove */
inline accept_metadata(own) {
  for (at : 0 .. CELLS - 1) {
    if
    :: own.call.change[at] == FORGET -> own.metadata[at] = 0
    :: own.call.change[at] && own.call.change[at] != FORGET -> own.metadata[at] = own.call.change[at]
    :: else
    fi
  }
}
