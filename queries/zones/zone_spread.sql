-- How many running pods each workload had in each zone, as a step function.
-- @grain one row per workload, zone and step
-- @column cluster  text; name of the cluster
-- @column namespace  text; namespace of the workload
-- @column workload  text; topmost controller that the record knows, else Pod/name
-- @column kind  text; kind of the workload
-- @column zone  text; zone label of the node, null for nodes without one or gone
-- @column from_revision  revision; first revision of the step
-- @column to_revision  revision; first revision after the step
-- @column from_at  time; estimated start
-- @column to_at  time; estimated end
-- @column pods  pods; bound and not terminal
-- @source placements_rows, node_spans_rows, pods_rows, revision_times_rows, replay_state_rows
WITH located AS (
  SELECT
    l.cluster,
    l.namespace,
    p.workload,
    l.uid,
    n.zone,
    greatest(l.from_revision, n.from_revision) AS from_revision,
    least(l.to_revision, n.to_revision) AS to_revision
  FROM placements_rows AS l
  INNER JOIN pods_rows AS p
    ON p.cluster = l.cluster AND p.uid = l.uid
  INNER JOIN node_spans_rows AS n
    ON n.cluster = l.cluster
    AND n.node = l.node
    AND n.from_revision < l.to_revision
    AND n.to_revision > l.from_revision
),
known AS (
  SELECT
    cluster,
    uid,
    min(from_revision) AS from_revision,
    max(to_revision) AS to_revision
  FROM located
  GROUP BY cluster, uid
),
lost AS (
  SELECT
    l.cluster,
    l.namespace,
    p.workload,
    l.uid,
    CAST(NULL AS VARCHAR) AS zone,
    greatest(l.from_revision, coalesce(k.to_revision, l.from_revision)) AS from_revision,
    l.to_revision
  FROM placements_rows AS l
  INNER JOIN pods_rows AS p
    ON p.cluster = l.cluster AND p.uid = l.uid
  LEFT JOIN known AS k
    ON k.cluster = l.cluster AND k.uid = l.uid
  WHERE k.uid IS NULL OR k.to_revision < l.to_revision
),
stays AS (
  SELECT cluster, namespace, workload, zone, from_revision, to_revision FROM located
  UNION ALL
  SELECT cluster, namespace, workload, zone, from_revision, to_revision FROM lost
),
turns AS (
  SELECT cluster, namespace, workload, zone, from_revision AS revision, 1 AS pods FROM stays
  UNION ALL
  SELECT cluster, namespace, workload, zone, to_revision AS revision, -1 AS pods FROM stays
),
summed AS (
  SELECT
    cluster,
    namespace,
    workload,
    zone,
    revision,
    sum(pods) AS pods
  FROM turns
  GROUP BY cluster, namespace, workload, zone, revision
  HAVING sum(pods) <> 0
),
steps AS (
  SELECT
    s.cluster,
    s.namespace,
    s.workload,
    s.zone,
    s.revision AS from_revision,
    coalesce(
      lead(s.revision) OVER (
        PARTITION BY s.cluster, s.namespace, s.workload, s.zone ORDER BY s.revision
      ),
      r.last_revision + 1
    ) AS to_revision,
    sum(s.pods) OVER (
      PARTITION BY s.cluster, s.namespace, s.workload, s.zone ORDER BY s.revision
    ) AS pods,
    r.last_revision
  FROM summed AS s
  INNER JOIN replay_state_rows AS r
    ON r.cluster = s.cluster
)
SELECT
  s.cluster,
  s.namespace,
  s.workload,
  split_part(s.workload, '/', 1) AS kind,
  s.zone,
  s.from_revision,
  s.to_revision,
  f.at AS from_at,
  coalesce(t.at, e.at) AS to_at,
  CAST(s.pods AS BIGINT) AS pods
FROM steps AS s
LEFT JOIN revision_times_rows AS f
  ON f.cluster = s.cluster AND f.revision = s.from_revision
LEFT JOIN revision_times_rows AS t
  ON t.cluster = s.cluster AND t.revision = s.to_revision
LEFT JOIN revision_times_rows AS e
  ON e.cluster = s.cluster AND e.revision = s.last_revision
WHERE s.from_revision < s.to_revision
ORDER BY s.cluster, s.namespace, s.workload, s.zone, s.from_revision
