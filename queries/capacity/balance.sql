-- How evenly the Ready nodes were requested, as a step function by resource.
-- @grain one row per resource and step
-- @column cluster  text; name of the cluster
-- @column resource  text; cpu, memory, pods, ephemeral-storage or an extended resource
-- @column from_revision  revision; first revision of the step
-- @column to_revision  revision; first revision after the step
-- @column from_at  time; estimated start
-- @column to_at  time; estimated end
-- @column nodes  nodes; Ready nodes that offer the resource
-- @column mean_ratio  ratio; mean of requested / allocatable
-- @column stddev_ratio  ratio; population standard deviation
-- @column max_ratio  ratio; hottest node
-- @column min_ratio  ratio; coldest node
-- @column gini  ratio; Gini coefficient of the ratios, 0 is even
-- @column stranded  amount; free on open nodes that lack 100 m cpu, 256 MiB or a pod slot
-- @source usage_steps_rows, revision_times_rows, replay_state_rows
WITH edges AS (
  SELECT
    cluster,
    resource,
    from_revision AS revision
  FROM usage_steps_rows
  GROUP BY cluster, resource, from_revision
),
steps AS (
  SELECT
    e.cluster,
    e.resource,
    e.revision AS from_revision,
    coalesce(
      lead(e.revision) OVER (PARTITION BY e.cluster, e.resource ORDER BY e.revision),
      r.last_revision + 1
    ) AS to_revision,
    r.last_revision
  FROM edges AS e
  INNER JOIN replay_state_rows AS r
    ON r.cluster = e.cluster
),
shares AS (
  SELECT
    s.cluster,
    s.resource,
    s.from_revision,
    s.to_revision,
    s.last_revision,
    u.ready,
    CASE WHEN u.ready THEN u.requested / u.allocatable END AS ratio,
    CASE WHEN u.open AND u.roomless THEN greatest(u.allocatable - u.requested, 0) ELSE 0 END
      AS stranded,
    row_number() OVER (
      PARTITION BY s.cluster, s.resource, s.from_revision, u.ready
      ORDER BY u.requested / u.allocatable, u.node
    ) AS place
  FROM steps AS s
  INNER JOIN usage_steps_rows AS u
    ON u.cluster = s.cluster
    AND u.resource = s.resource
    AND u.from_revision <= s.from_revision
    AND u.to_revision > s.from_revision
  WHERE u.allocatable > 0
),
-- A sum of floats depends on their order, and threads have none.
measured AS (
  SELECT
    cluster,
    resource,
    from_revision,
    to_revision,
    max(last_revision) AS last_revision,
    count(ratio) AS nodes,
    avg(ratio ORDER BY place) AS mean_ratio,
    stddev_pop(ratio ORDER BY place) AS stddev_ratio,
    max(ratio) AS max_ratio,
    min(ratio) AS min_ratio,
    sum(ratio ORDER BY place) AS total_ratio,
    sum(CASE WHEN ready THEN place * ratio END ORDER BY place) AS placed_ratio,
    sum(stranded) AS stranded
  FROM shares
  GROUP BY cluster, resource, from_revision, to_revision
)
SELECT
  m.cluster,
  m.resource,
  m.from_revision,
  m.to_revision,
  f.at AS from_at,
  coalesce(t.at, e.at) AS to_at,
  m.nodes,
  m.mean_ratio,
  m.stddev_ratio,
  m.max_ratio,
  m.min_ratio,
  CASE
    WHEN m.total_ratio > 0
      THEN 2 * m.placed_ratio / (m.nodes * m.total_ratio) - (m.nodes + 1) / m.nodes
    WHEN m.nodes > 0 THEN 0
  END AS gini,
  CAST(m.stranded AS BIGINT) AS stranded
FROM measured AS m
LEFT JOIN revision_times_rows AS f
  ON f.cluster = m.cluster AND f.revision = m.from_revision
LEFT JOIN revision_times_rows AS t
  ON t.cluster = m.cluster AND t.revision = m.to_revision
LEFT JOIN revision_times_rows AS e
  ON e.cluster = m.cluster AND e.revision = m.last_revision
ORDER BY m.cluster, m.resource, m.from_revision
