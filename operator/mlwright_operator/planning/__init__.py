"""What to do next, as pure functions of what was observed: no state is kept, so nothing can be lost with it.

The life of a Rollout, one step at a time (`rollout.next_step`); each follows from what is seen, whoever did the last:

1. not accepted (task missing, changed or not ready, limits too high): said in the condition Accepted, and waited for;
2. accepted, no Job: wants a slot; `admission` gives the next one to the run with the fewest sandboxes per weight;
3. admitted: its Job is applied, under a derived name; once that is known to exist, `status.attempt` is its number;
4. a Job that runs: Started says how far it is, or what it waits for;
5. over, and not its own fault, with retries left: the next Job first, then its number, then the old Job is deleted;
6. over otherwise: the outcome is written first, then the Job is deleted;
7. ended: whatever Job there still is gets deleted; much later, if nobody is there to read it, so is the Rollout.

A Job that is gone although its attempt has no outcome was deleted by somebody: the infrastructure failed (5 or 6).
A stale plan does no harm: names are derived, a status is only written over the version that was read, and a Job that a
stale plan makes for a Rollout that has ended is deleted by step 7, its result never read.
"""
