-- Every revision of every pod, deletes included, with what changed.
-- @grain one row per revision of a pod
-- @column cluster  text; name of the cluster
-- @column namespace  text; namespace of the pod
-- @column pod  text; name of the pod
-- @column uid  text; uid of the pod
-- @column revision  revision; etcd mod_revision
-- @column version  count; etcd version of the key, 0 for a delete
-- @column operation  text; PUT or DELETE
-- @column stage  text; most advanced change of the revision
-- @column node  text; spec.nodeName, for a delete that of the last state
-- @column phase  text; status.phase, for a delete that of the last state
-- @column writer  text; field manager of the change, null when not told
-- @column changed  json; JSON pointers that changed, heartbeats and managedFields left out
-- @column heartbeats  json; changed pointers that only say "still here"
-- @column patch  json; RFC 6902 from the previous revision, managedFields left out
-- @column at  time; estimated commit time
-- @column at_certainty  text; observed, estimated or unknown
-- @column at_error_seconds  seconds; bound on the error of at
-- @source pod_states_rows, revision_times_rows
SELECT
  s.cluster,
  s.namespace,
  s.pod,
  s.uid,
  s.revision,
  s.version,
  s.operation,
  s.stage,
  s.node,
  s.phase,
  s.writer,
  s.changed,
  s.heartbeats,
  s.patch,
  t.at,
  t.at_certainty,
  t.at_error_seconds
FROM pod_states_rows AS s
LEFT JOIN revision_times_rows AS t
  ON t.cluster = s.cluster AND t.revision = s.revision
ORDER BY s.cluster, s.revision, s.sub, s.namespace, s.pod
