-- Every change of a node that matters to scheduling.
-- @grain one row per change of a node
-- @column cluster  text; name of the cluster
-- @column node  text; name of the node
-- @column zone  text; its zone label
-- @column at  time; estimated commit time
-- @column at_certainty  text; observed, estimated or unknown
-- @column at_error_seconds  seconds; bound on the error of at
-- @column revision  revision; etcd revision
-- @column change  text; registered, cordoned, taint_added and so on
-- @column detail  text; what changed, in words
-- @source node_changes_rows, revision_times_rows
SELECT
  n.cluster,
  n.node,
  n.zone,
  t.at,
  t.at_certainty,
  t.at_error_seconds,
  n.revision,
  n.change,
  n.detail
FROM node_changes_rows AS n
LEFT JOIN revision_times_rows AS t
  ON t.cluster = n.cluster AND t.revision = n.revision
ORDER BY n.cluster, n.revision, n.sub, n.ordinal, n.node
