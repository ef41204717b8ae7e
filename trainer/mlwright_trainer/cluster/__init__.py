"""Scripts in a cluster's sandboxes: the trainer writes Rollout objects, and the operator runs them.

`ClusterBackend` (backend.py) is the synchronous port that everybody uses; behind it one thread with an event loop
holds `LiveRollouts` (live.py), which creates and deletes objects, and a `Follower` (following.py), the one watch.
Both speak to a `RolloutApi` (port.py), in reality an API server (kube.py). What can be pure is: names and labels
(owner.py), the object that is sent (manifest.py), what an object says (reading.py).
"""
