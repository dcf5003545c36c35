-- Every pod that got a node, and by which way.
-- @grain one row per pod uid with a node
-- @column cluster  text; name of the cluster
-- @column namespace  text; namespace of the pod
-- @column pod  text; name of the pod
-- @column uid  text; uid of the pod
-- @column node  text; node it got
-- @column revision  revision; etcd revision that set spec.nodeName
-- @column created_revision  revision; first revision of the pod in the record
-- @column at  time; estimated commit time of the binding
-- @column at_certainty  text; observed, estimated or unknown
-- @column at_error_seconds  seconds; bound on the error of at
-- @column waited_seconds  seconds; from creation to binding, null when the creation is not known
-- @column path  text; scheduler, preset (created with a node) or static (a kubelet's mirror pod)
-- @source pods_rows, revision_times_rows
SELECT
  p.cluster,
  p.namespace,
  p.pod,
  p.uid,
  p.node,
  p.bound_revision AS revision,
  p.created_revision,
  b.at,
  b.at_certainty,
  b.at_error_seconds,
  CASE
    WHEN p.created_known
      THEN date_diff('millisecond', c.at, b.at) / 1000.0
  END AS waited_seconds,
  p.path
FROM pods_rows AS p
LEFT JOIN revision_times_rows AS b
  ON b.cluster = p.cluster AND b.revision = p.bound_revision
LEFT JOIN revision_times_rows AS c
  ON c.cluster = p.cluster AND c.revision = p.created_revision
WHERE p.bound_revision IS NOT NULL
ORDER BY p.cluster, p.bound_revision, p.namespace, p.pod, p.uid
