-- What logs cover: each stretch, the verbosity it was taken with, and what that can answer.
-- The verbosity is the flag that start-up prints (at -v=1 and above), else inferred from the
-- messages that occur, so it is at least that. Levels are
-- the lowest of kube-scheduler, kubelet and kube-controller-manager 1.7 to 1.36, read off their
-- sources (facts/klog-messages-scheduler.tsv, facts/formats.md 2); only messages tracekit reads.
-- @grain one row per component, node and unbroken stretch
-- @column cluster  text; name of the cluster
-- @column component  text; component that wrote it, null when unknown
-- @column node  text; node it ran on, null when unknown
-- @column from_at  time; first record with a time
-- @column to_at  time; last record with a time
-- @column lines  count; records
-- @column verbosity  count; -v as its flag says, else the lowest that explains all messages
-- @column answers  text; questions that this verbosity answers
-- @source log_records
WITH
levels (words, whole, level) AS (
  VALUES
    ('Unable to schedule pod; no fit; waiting', TRUE, 2),
    ('Unable to schedule ', FALSE, 2),
    ('Successfully bound pod to node', TRUE, 2),
    ('Preemptor Pod preempted victim Pod', TRUE, 2),
    ('the target node for the preemption is determined', TRUE, 2),
    ('Start the preemption asynchronously', TRUE, 2),
    ('Attempting to schedule pod', TRUE, 3),
    ('Attempting to schedule pod: ', FALSE, 3),
    ('Attempting to bind pod to node', TRUE, 3),
    ('Updating pod condition', TRUE, 3),
    ('Updating pod condition and nominated node name', TRUE, 3),
    ('Preemption will not help schedule pod', FALSE, 3),
    ('Add event for unscheduled pod', TRUE, 3),
    ('Delete event for unscheduled pod', TRUE, 3),
    ('Add event for scheduled pod', TRUE, 3),
    ('Add event for node', TRUE, 3),
    ('Pod moved to an internal scheduling queue', TRUE, 3),
    ('About to try and schedule pod', FALSE, 4),
    ('Update event for scheduled pod', TRUE, 4),
    ('Update event for node', TRUE, 4),
    ('node had untolerated taints', TRUE, 4),
    ('Status after running PostFilter plugins for pod', FALSE, 5),
    ('Pod is not eligible for preemption', TRUE, 5),
    ('Pod is a potential preemption victim on node', TRUE, 5),
    ('Plugin scored node for pod', TRUE, 10),
    ('Calculated node''s final score for pod', TRUE, 10),
    ('Host ', FALSE, 10),
    ('SyncLoop (probe)', FALSE, 1),
    ('SyncLoop ADD', TRUE, 2),
    ('SyncLoop UPDATE', TRUE, 2),
    ('SyncLoop DELETE', TRUE, 2),
    ('SyncLoop REMOVE', TRUE, 2),
    ('SyncLoop (ADD', FALSE, 2),
    ('SyncLoop (PLEG)', FALSE, 2),
    ('SyncLoop RECONCILE', TRUE, 4),
    ('Receiving a new pod', TRUE, 4),
    ('SyncPod enter', TRUE, 4),
    ('Creating PodSandbox for pod', TRUE, 4),
    ('Node is NotReady. Adding it to the Taint queue', TRUE, 2),
    ('Not all taints are tolerated after update for pod on node', TRUE, 2),
    ('Added taint to node', TRUE, 4)
),
questions (component, level, question) AS (
  VALUES
    ('kube-scheduler', 0, 'scheduling errors'),
    ('kube-scheduler', 2, 'bindings'),
    ('kube-scheduler', 2, 'unschedulable verdicts'),
    ('kube-scheduler', 2, 'preemption victims'),
    ('kube-scheduler', 3, 'every attempt'),
    ('kube-scheduler', 3, 'pods and nodes the scheduler saw appear'),
    ('kube-scheduler', 4, 'changes the scheduler saw'),
    ('kube-scheduler', 4, 'taints that blocked'),
    ('kube-scheduler', 5, 'every queue move'),
    ('kube-scheduler', 5, 'preemption candidates'),
    ('kube-scheduler', 10, 'node scores'),
    ('kubelet', 0, 'evictions and rejections'),
    ('kubelet', 2, 'pods added and removed'),
    ('kubelet', 2, 'container starts'),
    ('kubelet', 4, 'pod syncs'),
    ('kube-controller-manager', 0, 'taint evictions'),
    ('kube-controller-manager', 2, 'node health'),
    ('kube-controller-manager', 4, 'taints set')
),
told AS (
  SELECT
    m.message,
    max(
      coalesce(
        CAST(
          nullif(regexp_extract(m.message, '^FLAG: --v="([0-9]{1,3})"$', 1), '')
          AS INTEGER
        ) + 1000,
        v.level
      )
    ) AS level
  FROM (
    SELECT DISTINCT l.message FROM log_records AS l WHERE l.severity = 'I'
  ) AS m
  LEFT JOIN levels AS v
    ON m.message = v.words
    OR (NOT v.whole AND starts_with(m.message, v.words))
  GROUP BY m.message
),
steps AS (
  SELECT
    r.cluster,
    r.component,
    r.node,
    r.at,
    CASE WHEN r.severity = 'I' THEN t.level END AS level,
    CASE
      WHEN r.at - lag(r.at) OVER (
        PARTITION BY r.cluster, r.component, r.node ORDER BY r.at NULLS FIRST
      ) > INTERVAL 10 MINUTE THEN 1
      ELSE 0
    END AS begins
  FROM log_records AS r
  LEFT JOIN told AS t
    ON t.message = r.message
),
numbered AS (
  SELECT
    s.cluster,
    s.component,
    s.node,
    s.at,
    s.level,
    sum(s.begins) OVER (
      PARTITION BY s.cluster, s.component, s.node
      ORDER BY s.at NULLS FIRST
      RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS stretch
  FROM steps AS s
),
stretches AS (
  SELECT
    n.cluster,
    n.component,
    n.node,
    min(n.at) AS from_at,
    max(n.at) AS to_at,
    count(*) AS lines,
    CAST(coalesce(max(n.level), 0) % 1000 AS BIGINT) AS verbosity
  FROM numbered AS n
  GROUP BY n.cluster, n.component, n.node, n.stretch
)
SELECT
  s.cluster,
  s.component,
  s.node,
  s.from_at,
  s.to_at,
  s.lines,
  s.verbosity,
  coalesce(
    (
      SELECT string_agg(q.question, ', ' ORDER BY q.level, q.question)
      FROM questions AS q
      WHERE q.component = s.component AND q.level <= s.verbosity
    ),
    ''
  ) AS answers
FROM stretches AS s
ORDER BY s.cluster, s.component, s.node, s.from_at
