/* Names: which numbers runs and generations have, and where counting begins, makes no difference. So a name is used
   again once nothing has it any more, and counts are lowered together. Otherwise equal states would be searched for
   every way that leads there. */

#define USE(name) used = used | (1 << (name))

inline begin_drop() {
  d_step {
    draw_names();
    drop.kind = DROP_BEGIN;
    drop.fence = server.fence;
    drop.since = server.since;
    drop.owner = server.nonce;
    drop.nonce = new_nonce
  }
}

inline draw_names() {
  used = 1;
  USE(server.nonce); USE(kept[0].nonce); USE(kept[1].nonce); USE(late.nonce); USE(late.owner);
  USE(runs[0].nonce); USE(runs[1].nonce); USE(runs[0].call.owner); USE(runs[1].call.owner);
  for (one : 1 .. TXIDS) {
    USE(server.receipt[one] / EPOCHS); USE(kept[0].receipt[one] / EPOCHS); USE(kept[1].receipt[one] / EPOCHS);
    USE(late.attempt[one] / EPOCHS)
  }
#ifdef DROPS
  USE(drop.nonce); USE(drop.owner);
#endif
  new_nonce = 1;
  do
  :: used & (1 << new_nonce) -> new_nonce++
  :: else -> break
  od;
  used = 1;
  USE(server.generation); USE(kept[0].generation); USE(kept[1].generation); USE(late.generation);
  USE(runs[0].generation); USE(runs[1].generation); USE(runs[0].call.generation); USE(runs[1].call.generation);
  new_generation = 1;
  do
  :: used & (1 << new_generation) -> new_generation++
  :: else -> break
  od
}
hidden int used;
hidden byte new_nonce;
hidden byte new_generation;

#define MIN(count) low = ((count) && (count) < low -> (count) : low)
#define LOWER(count) count = (count > low -> count - low : 0)
#define IS_AWAITED(srv) \
  ((late.kind && late.revision + 1 == srv.revision) || (runs[0].stage == SENT && runs[0].call.revision + 1 == srv.revision) || \
  (runs[1].stage == SENT && runs[1].call.revision + 1 == srv.revision))

/* The revision of a fence matters only while its request may be executed again, or if that was done at two revisions.
   With TEARS fences have none: the step would be too long for SPIN. */
#define NOTE_SINCE(name, when) \
  told_apart = (!(name) || !(used & (1 << (name))) || first_since[name] == (when) -> told_apart : told_apart | (1 << (name))); \
  first_since[name] = (used & (1 << (name)) -> first_since[name] : (when)); \
  used = used | (1 << (name))
#define LEAVE_SINCE(name, when) when = (told_apart & (1 << (name)) -> when : 0)

inline forget_since() {
  used = 0;
  told_apart = 0;
  NOTE_SINCE(server.nonce, server.since); NOTE_SINCE(kept[0].nonce, kept[0].since);
  NOTE_SINCE(kept[1].nonce, kept[1].since); NOTE_SINCE(late.owner, late.since);
  NOTE_SINCE(runs[0].nonce, runs[0].since); NOTE_SINCE(runs[1].nonce, runs[1].since);
  NOTE_SINCE(runs[0].call.owner, runs[0].call.since); NOTE_SINCE(runs[1].call.owner, runs[1].call.since);
#ifdef DROPS
  NOTE_SINCE(drop.owner, drop.since);
  told_apart = told_apart | (1 << drop.nonce);
#endif
  told_apart = told_apart | (1 << late.nonce) | (1 << runs[0].call.nonce) | (1 << runs[1].call.nonce);
  LEAVE_SINCE(server.nonce, server.since); LEAVE_SINCE(kept[0].nonce, kept[0].since);
  LEAVE_SINCE(kept[1].nonce, kept[1].since); LEAVE_SINCE(late.owner, late.since);
  LEAVE_SINCE(runs[0].nonce, runs[0].since); LEAVE_SINCE(runs[1].nonce, runs[1].since);
  LEAVE_SINCE(runs[0].call.owner, runs[0].call.since); LEAVE_SINCE(runs[1].call.owner, runs[1].call.since);
#ifdef DROPS
  LEAVE_SINCE(drop.owner, drop.since)
#else
  skip
#endif
}
hidden int told_apart;
hidden byte first_since[32];

inline lower_all() {
#ifndef TEARS
  forget_since();
#endif
  if
  :: server.generation && (!kept_count || kept[0].generation) && (kept_count < 2 || kept[1].generation) ->
    low = 255;
    MIN(server.revision); MIN(kept[0].revision); MIN(kept[1].revision); MIN(late.revision);
    MIN(runs[0].revision); MIN(runs[1].revision); MIN(runs[0].call.revision); MIN(runs[1].call.revision);
#ifndef TEARS
    MIN(server.since); MIN(kept[0].since); MIN(kept[1].since); MIN(late.since);
    MIN(runs[0].since); MIN(runs[1].since); MIN(runs[0].call.since); MIN(runs[1].call.since);
#ifdef DROPS
    MIN(drop.since);
#endif
#endif
    low--;
    LOWER(server.revision); LOWER(kept[0].revision); LOWER(kept[1].revision); LOWER(late.revision);
    LOWER(runs[0].revision); LOWER(runs[1].revision); LOWER(runs[0].call.revision); LOWER(runs[1].call.revision);
#ifndef TEARS
    LOWER(server.since); LOWER(kept[0].since); LOWER(kept[1].since); LOWER(late.since);
    LOWER(runs[0].since); LOWER(runs[1].since); LOWER(runs[0].call.since); LOWER(runs[1].call.since);
#ifdef DROPS
    LOWER(drop.since);
#endif
#endif
    low = 255;
    MIN(server.fence); MIN(kept[0].fence); MIN(kept[1].fence); MIN(late.fence);
    MIN(runs[0].fence); MIN(runs[1].fence); MIN(runs[0].call.fence); MIN(runs[1].call.fence);
#ifdef DROPS
    MIN(drop.fence);
#endif
    low--;
    LOWER(server.fence); LOWER(kept[0].fence); LOWER(kept[1].fence); LOWER(late.fence);
    LOWER(runs[0].fence); LOWER(runs[1].fence); LOWER(runs[0].call.fence); LOWER(runs[1].call.fence);
#ifdef DROPS
    LOWER(drop.fence);
#endif
    skip
  :: else
  fi;
  server.last_call = (IS_AWAITED(server) -> server.last_call : 0);
  kept[0].last_call = (IS_AWAITED(kept[0]) -> kept[0].last_call : 0);
  kept[1].last_call = (IS_AWAITED(kept[1]) -> kept[1].last_call : 0);
#ifndef TEARS
  lower_counts(server); lower_counts(kept[0]); lower_counts(kept[1])
#endif
}
hidden byte low;

/* Only whether the two counts of writes are equal matters. */
inline lower_counts(srv) {
  if
  :: srv.begun == srv.ended -> srv.begun = 0; srv.ended = 0
  :: else -> srv.begun = 1; srv.ended = 0
  fi
}
