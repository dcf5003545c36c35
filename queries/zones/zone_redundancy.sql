-- How each workload stands against the loss of a zone at the last revision.
-- @grain one row per workload with a running pod, DaemonSets left out
-- @column cluster  text; name of the cluster
-- @column namespace  text; namespace of the workload
-- @column workload  text; topmost controller that the record knows, else Pod/name
-- @column kind  text; kind of the workload
-- @column replicas  pods; bound and not terminal
-- @column zones_used  count; zones that hold one of them
-- @column zones_available  count; zones with an open node
-- @column largest_zone_share  ratio; share of the replicas in the fullest zone
-- @column skew  pods; fullest minus emptiest of the available and used zones
-- @column seconds_in_one_zone  seconds; time with two replicas or more, all in one zone or none
-- @column spread_was_possible  bool; two replicas or more and two available zones or more
-- @column risk  text; none, single_replica, single_zone or skewed
-- @source zone_spread, _workload_zones, node_spans_rows, replay_state_rows
WITH last_zones AS (
  SELECT
    z.cluster,
    z.namespace,
    z.workload,
    z.kind,
    z.zone,
    z.pods
  FROM zone_spread AS z
  INNER JOIN replay_state_rows AS r
    ON r.cluster = z.cluster AND z.to_revision > r.last_revision
  WHERE z.pods > 0 AND z.kind <> 'DaemonSet'
),
running AS (
  SELECT
    cluster,
    namespace,
    workload,
    kind,
    sum(pods) AS replicas,
    count(zone) AS zones_used,
    coalesce(max(CASE WHEN zone IS NOT NULL THEN pods END), 0) AS fullest,
    coalesce(min(CASE WHEN zone IS NOT NULL THEN pods END), 0) AS emptiest
  FROM last_zones
  GROUP BY cluster, namespace, workload, kind
),
open_zones AS (
  SELECT DISTINCT
    n.cluster,
    n.zone
  FROM node_spans_rows AS n
  INNER JOIN replay_state_rows AS r
    ON r.cluster = n.cluster AND n.to_revision > r.last_revision
  WHERE n.open AND n.zone IS NOT NULL
),
available AS (
  SELECT cluster, count(zone) AS zones_available FROM open_zones GROUP BY cluster
),
unused AS (
  SELECT
    w.cluster,
    w.namespace,
    w.workload,
    count(o.zone) - count(l.zone) AS empty_zones
  FROM running AS w
  INNER JOIN open_zones AS o
    ON o.cluster = w.cluster
  LEFT JOIN last_zones AS l
    ON l.cluster = w.cluster
    AND l.namespace = w.namespace
    AND l.workload = w.workload
    AND l.zone = o.zone
  GROUP BY w.cluster, w.namespace, w.workload
),
alone AS (
  SELECT
    cluster,
    namespace,
    workload,
    sum(date_diff('millisecond', from_at, to_at)) / 1000.0 AS seconds_in_one_zone
  FROM _workload_zones
  WHERE pods >= 2 AND zones_used <= 1
  GROUP BY cluster, namespace, workload
),
judged AS (
  SELECT
    w.cluster,
    w.namespace,
    w.workload,
    w.kind,
    CAST(w.replicas AS BIGINT) AS replicas,
    w.zones_used,
    coalesce(a.zones_available, 0) AS zones_available,
    w.fullest / w.replicas AS largest_zone_share,
    w.fullest - CASE WHEN coalesce(u.empty_zones, 0) > 0 THEN 0 ELSE w.emptiest END AS skew,
    coalesce(s.seconds_in_one_zone, 0) AS seconds_in_one_zone
  FROM running AS w
  LEFT JOIN available AS a
    ON a.cluster = w.cluster
  LEFT JOIN unused AS u
    ON u.cluster = w.cluster AND u.namespace = w.namespace AND u.workload = w.workload
  LEFT JOIN alone AS s
    ON s.cluster = w.cluster AND s.namespace = w.namespace AND s.workload = w.workload
)
SELECT
  cluster,
  namespace,
  workload,
  kind,
  replicas,
  zones_used,
  zones_available,
  largest_zone_share,
  skew,
  seconds_in_one_zone,
  replicas >= 2 AND zones_available >= 2 AS spread_was_possible,
  CASE
    WHEN replicas = 1 THEN 'single_replica'
    WHEN zones_used <= 1 THEN 'single_zone'
    WHEN skew > 1 THEN 'skewed'
    ELSE 'none'
  END AS risk
FROM judged
ORDER BY cluster, namespace, workload
