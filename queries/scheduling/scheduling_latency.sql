-- How long pods took from creation to binding and from binding to running.
-- @grain one row per namespace, workload and step
-- @column cluster  text; name of the cluster
-- @column namespace  text; namespace of the pods
-- @column workload  text; topmost controller that the record knows, else Pod/name
-- @column step  text; created_to_bound or bound_to_running
-- @column pods  pods; pods that have both ends in the record
-- @column p50_seconds  seconds; nearest-rank median
-- @column p90_seconds  seconds; nearest-rank 90th percentile
-- @column p99_seconds  seconds; nearest-rank 99th percentile
-- @source pods_rows, revision_times_rows
WITH spans AS (
  SELECT
    cluster,
    namespace,
    workload,
    uid,
    'created_to_bound' AS step,
    created_revision AS from_revision,
    bound_revision AS to_revision
  FROM pods_rows
  WHERE created_known AND bound_revision IS NOT NULL AND path = 'scheduler'
  UNION ALL
  SELECT
    cluster,
    namespace,
    workload,
    uid,
    'bound_to_running' AS step,
    bound_revision AS from_revision,
    started_revision AS to_revision
  FROM pods_rows
  WHERE bound_revision IS NOT NULL AND started_revision IS NOT NULL
),
ranked AS (
  SELECT
    s.cluster,
    s.namespace,
    s.workload,
    s.step,
    date_diff('millisecond', f.at, t.at) / 1000.0 AS seconds,
    row_number() OVER (
      PARTITION BY s.cluster, s.namespace, s.workload, s.step ORDER BY t.at - f.at, s.uid
    ) AS place,
    count(*) OVER (PARTITION BY s.cluster, s.namespace, s.workload, s.step) AS pods
  FROM spans AS s
  INNER JOIN revision_times_rows AS f
    ON f.cluster = s.cluster AND f.revision = s.from_revision
  INNER JOIN revision_times_rows AS t
    ON t.cluster = s.cluster AND t.revision = s.to_revision
  WHERE f.at IS NOT NULL AND t.at IS NOT NULL
)
SELECT
  cluster,
  namespace,
  workload,
  step,
  max(pods) AS pods,
  max(CASE WHEN place = ceil(0.50 * pods) THEN seconds END) AS p50_seconds,
  max(CASE WHEN place = ceil(0.90 * pods) THEN seconds END) AS p90_seconds,
  max(CASE WHEN place = ceil(0.99 * pods) THEN seconds END) AS p99_seconds
FROM ranked
GROUP BY cluster, namespace, workload, step
ORDER BY cluster, namespace, workload, step
