-- Every scheduling cycle of a pod that any source tells of.
-- @grain one row per attempt
-- @column cluster  text; name of the cluster
-- @column attempt_id  text; stable id of the attempt
-- @column namespace  text; namespace of the pod
-- @column pod  text; name of the pod
-- @column uid  text; uid of the pod, null when only a log told of it
-- @column revision  revision; etcd revision that wrote the verdict, null when nothing was written
-- @column at  time; time of the verdict
-- @column at_certainty  text; observed (event or log), estimated (revision) or unknown
-- @column at_error_seconds  seconds; bound on the error of at
-- @column verdict  text; bound, unschedulable, error or gated
-- @column node  text; node of a bound verdict
-- @column nodes_total  nodes; N of "0/N nodes are available"
-- @column nodes_evaluated  nodes; nodes the scheduler filtered, where the log tells it
-- @column nodes_feasible  nodes; nodes that passed, where the log tells it
-- @column message  text; the scheduler's words
-- @column sources  text; which of condition, binding, event and log told it, message for bare words
-- @column prefilter  bool; a PreFilter plugin refused the pod, one reason for all nodes
-- @column truncated  bool; the words are cut, counts are lower bounds
-- @column point  text; extension point that failed, for an error that names it
-- @column preemption  json; nodes and reasons behind "preemption:", or its text
-- @column postfilter  text; words of other PostFilter plugins
-- @source attempts_rows
SELECT
  a.cluster,
  a.attempt_id,
  a.namespace,
  a.pod,
  a.uid,
  a.revision,
  a.at,
  a.at_certainty,
  a.at_error_seconds,
  a.verdict,
  a.node,
  a.nodes_total,
  a.nodes_evaluated,
  a.nodes_feasible,
  a.message,
  a.sources,
  a.prefilter,
  a.truncated,
  a.point,
  a.preemption,
  a.postfilter
FROM attempts_rows AS a
ORDER BY a.cluster, a.at, a.revision, a.namespace, a.pod, a.attempt_id
