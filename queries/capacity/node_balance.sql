-- What was requested of each node against what it offers, as a step function.
-- @grain one row per node, resource and step
-- @column cluster  text; name of the cluster
-- @column node  text; name of the node
-- @column zone  text; its zone label
-- @column resource  text; cpu, memory, pods, ephemeral-storage or an extended resource
-- @column from_revision  revision; first revision of the step
-- @column to_revision  revision; first revision after the step
-- @column from_at  time; estimated start
-- @column to_at  time; estimated end
-- @column requested  amount; millicores, bytes or counts
-- @column allocatable  amount; millicores, bytes or counts
-- @column ratio  ratio; requested / allocatable, null where nothing is allocatable
-- @column ready  bool; the node was Ready
-- @column open  bool; ready, not cordoned, no NoSchedule or NoExecute taint
-- @source usage_steps_rows, revision_times_rows, replay_state_rows
SELECT
  u.cluster,
  u.node,
  u.zone,
  u.resource,
  u.from_revision,
  u.to_revision,
  f.at AS from_at,
  coalesce(t.at, e.at) AS to_at,
  u.requested,
  u.allocatable,
  CASE WHEN u.allocatable > 0 THEN u.requested / u.allocatable END AS ratio,
  u.ready,
  u.open
FROM usage_steps_rows AS u
INNER JOIN replay_state_rows AS r
  ON r.cluster = u.cluster
LEFT JOIN revision_times_rows AS f
  ON f.cluster = u.cluster AND f.revision = u.from_revision
LEFT JOIN revision_times_rows AS t
  ON t.cluster = u.cluster AND t.revision = u.to_revision
LEFT JOIN revision_times_rows AS e
  ON e.cluster = u.cluster AND e.revision = r.last_revision
ORDER BY u.cluster, u.node, u.resource, u.from_revision
