-- How much waiting each cause made, by namespace and workload.
-- @grain one row per namespace, workload and cause
-- @column cluster  text; name of the cluster
-- @column namespace  text; namespace of the pods
-- @column workload  text; topmost controller that the record knows, else Pod/name
-- @column cause  text; reason that blocks most nodes, or the kind
-- @column pods  pods; pods that waited for it
-- @column pod_seconds  seconds; sum of their waiting
-- @column longest_seconds  seconds; longest single stretch
-- @source pending
SELECT
  cluster,
  namespace,
  workload,
  cause,
  count(DISTINCT uid) AS pods,
  round(sum(seconds), 3) AS pod_seconds,
  max(seconds) AS longest_seconds
FROM pending
GROUP BY cluster, namespace, workload, cause
ORDER BY cluster, pod_seconds DESC, namespace, workload, cause
