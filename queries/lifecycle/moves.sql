-- Every pod that left its node, why, and what took its place.
-- @grain one row per pod uid that was bound and then ended
-- @column cluster  text; name of the cluster
-- @column namespace  text; namespace of the pod
-- @column pod  text; name of the pod
-- @column uid  text; uid of the pod
-- @column workload  text; topmost controller that the record knows, else Pod/name
-- @column node  text; node it left
-- @column at  time; estimated time of the deciding revision, or the time a text tells
-- @column at_certainty  text; observed, estimated or unknown
-- @column at_error_seconds  seconds; bound on the error of at
-- @column revision  revision; etcd revision that decided it, null when only a text tells
-- @column cause  text; why it left
-- @column detail  text; the evidence in words
-- @column actor  text; who did it, where known
-- @column preemptor  text; pod it had to make room for
-- @column replacement_uid  text; uid of the pod that took its place
-- @column replacement_pod  text; name of the pod that took its place
-- @column replacement_node  text; node of the pod that took its place
-- @column certainty  text; observed, estimated or unknown
-- @column evidence  json; revisions and objects that the cause rests on
-- @source moves_rows, pods_rows, revision_times_rows
SELECT
  m.cluster,
  m.namespace,
  m.pod,
  m.uid,
  p.workload,
  m.node,
  coalesce(t.at, m.told_at) AS at,
  CASE
    WHEN t.revision IS NOT NULL THEN t.at_certainty
    WHEN m.told_at IS NOT NULL THEN 'observed'
    ELSE 'unknown'
  END AS at_certainty,
  CASE
    WHEN t.revision IS NULL AND m.told_at IS NOT NULL THEN 1
    ELSE t.at_error_seconds
  END AS at_error_seconds,
  m.revision,
  m.cause,
  m.detail,
  m.actor,
  m.preemptor,
  m.replacement_uid,
  m.replacement_pod,
  m.replacement_node,
  m.certainty,
  m.evidence
FROM moves_rows AS m
LEFT JOIN pods_rows AS p
  ON p.cluster = m.cluster AND p.uid = m.uid AND m.uid != ''
LEFT JOIN revision_times_rows AS t
  ON t.cluster = m.cluster AND t.revision = m.revision
ORDER BY m.cluster, m.revision, m.namespace, m.pod, m.uid, m.detail
