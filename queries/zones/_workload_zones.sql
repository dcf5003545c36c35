-- In how many zones each workload ran, as a step function over all its zones.
-- @grain one row per workload and step
-- @column cluster  text; name of the cluster
-- @column namespace  text; namespace of the workload
-- @column workload  text; topmost controller that the record knows, else Pod/name
-- @column kind  text; kind of the workload
-- @column from_revision  revision; first revision of the step
-- @column to_revision  revision; first revision after the step
-- @column from_at  time; estimated start
-- @column to_at  time; estimated end
-- @column pods  pods; bound and not terminal
-- @column zones_used  count; zones with a label that hold one of them
-- @source zone_spread, replay_state_rows, revision_times_rows
WITH edges AS (
  SELECT cluster, namespace, workload, kind, from_revision AS revision FROM zone_spread
  UNION
  SELECT cluster, namespace, workload, kind, to_revision AS revision FROM zone_spread
),
steps AS (
  SELECT
    e.cluster,
    e.namespace,
    e.workload,
    e.kind,
    e.revision AS from_revision,
    lead(e.revision) OVER (
      PARTITION BY e.cluster, e.namespace, e.workload ORDER BY e.revision
    ) AS to_revision
  FROM edges AS e
),
counted AS (
  SELECT
    s.cluster,
    s.namespace,
    s.workload,
    s.kind,
    s.from_revision,
    s.to_revision,
    sum(z.pods) AS pods,
    count(CASE WHEN z.pods > 0 THEN z.zone END) AS zones_used
  FROM steps AS s
  INNER JOIN zone_spread AS z
    ON z.cluster = s.cluster
    AND z.namespace = s.namespace
    AND z.workload = s.workload
    AND z.from_revision <= s.from_revision
    AND z.to_revision > s.from_revision
  WHERE s.to_revision IS NOT NULL
  GROUP BY s.cluster, s.namespace, s.workload, s.kind, s.from_revision, s.to_revision
)
SELECT
  c.cluster,
  c.namespace,
  c.workload,
  c.kind,
  c.from_revision,
  c.to_revision,
  f.at AS from_at,
  coalesce(t.at, e.at) AS to_at,
  CAST(c.pods AS BIGINT) AS pods,
  c.zones_used
FROM counted AS c
INNER JOIN replay_state_rows AS r
  ON r.cluster = c.cluster
LEFT JOIN revision_times_rows AS f
  ON f.cluster = c.cluster AND f.revision = c.from_revision
LEFT JOIN revision_times_rows AS t
  ON t.cluster = c.cluster AND t.revision = c.to_revision
LEFT JOIN revision_times_rows AS e
  ON e.cluster = c.cluster AND e.revision = r.last_revision
ORDER BY c.cluster, c.namespace, c.workload, c.from_revision
