-- Every stretch of a pod's waiting, with its kind and its cause.
-- @grain one row per stretch of waiting with one cause
-- @column cluster  text; name of the cluster
-- @column namespace  text; namespace of the pod
-- @column pod  text; name of the pod
-- @column uid  text; uid of the pod
-- @column workload  text; topmost controller that the record knows, else Pod/name
-- @column from_at  time; estimated start
-- @column to_at  time; estimated end, the end of the record while open
-- @column seconds  seconds; length of the stretch
-- @column open  bool; it still waits at the last revision
-- @column kind  text; gated, unschedulable, error, starting or not_tried
-- @column cause  text; reason that blocks most nodes, or the kind
-- @column nodes_blocked  nodes; count of that reason
-- @column from_revision  revision; revision that began it
-- @column to_revision  revision; revision that ended it
-- @column error_seconds  seconds; bound on the error of seconds
-- @source pending_spells_rows, pods_rows, revision_times_rows
SELECT
  s.cluster,
  s.namespace,
  s.pod,
  s.uid,
  p.workload,
  f.at AS from_at,
  t.at AS to_at,
  date_diff('millisecond', f.at, t.at) / 1000.0 AS seconds,
  s.open,
  s.kind,
  s.cause,
  s.nodes_blocked,
  s.from_revision,
  s.to_revision,
  f.at_error_seconds + t.at_error_seconds AS error_seconds
FROM pending_spells_rows AS s
LEFT JOIN pods_rows AS p
  ON p.cluster = s.cluster AND p.uid = s.uid
LEFT JOIN revision_times_rows AS f
  ON f.cluster = s.cluster AND f.revision = s.from_revision
LEFT JOIN revision_times_rows AS t
  ON t.cluster = s.cluster AND t.revision = s.to_revision
ORDER BY s.cluster, s.from_revision, s.namespace, s.pod, s.uid
