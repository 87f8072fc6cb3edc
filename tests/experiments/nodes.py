"""Simulates a Ray cluster, whose head has no CPU cores. Commands on stdin add and remove other nodes."""

import os
import sys

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster

# Ray notices a lost node within a second instead of half a minute.
watchful = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300, "health_check_failure_threshold": 3}
head = {"num_cpus": 0, "include_dashboard": False, "_system_config": watchful}
cluster = Cluster(initialize_head=True, head_node_args=head)
nodes = []
print("cluster at", cluster.address, flush=True)
for line in sys.stdin:
    what, number = line.split()
    if what == "add":
        nodes.append(cluster.add_node(num_cpus=int(number)))
    else:
        cluster.remove_node(nodes[int(number)], allow_graceful=False)
    print("done", flush=True)
cluster.shutdown()
