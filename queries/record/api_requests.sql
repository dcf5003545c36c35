-- Every request that an audit log tells of, its stages merged.
-- @grain one row per request
-- @column cluster  text; name of the cluster
-- @column at  time; when the API server received it, else when it was answered
-- @column user  text; who asked
-- @column agent  text; user agent
-- @column verb  text; verb
-- @column resource  text; resource, plural
-- @column subresource  text; subresource, empty for none
-- @column namespace  text; namespace, empty for none
-- @column name  text; name, of a create with generateName that of the answer
-- @column status  count; HTTP status, null while not answered
-- @column status_reason  text; reason of a refusal
-- @column completed_at  time; when it was answered
-- @column stage  text; latest stage in the record
-- @column level  text; audit level of the record
-- @column uid  text; uid of the object, where the record tells it
-- @column node  text; target of a binding, else node of the pod in the answer
-- @column revision  revision; resourceVersion of the object in the answer
-- @column audit_id  text; id that all stages of a request share
-- @column raw  json; the record, payloads redacted
-- @source api_requests_rows
SELECT
  r.cluster,
  coalesce(r.requested_at, r.completed_at) AS at,
  r.user,
  r.agent,
  r.verb,
  r.resource,
  r.subresource,
  r.namespace,
  r.name,
  r.status,
  r.status_reason,
  r.completed_at,
  r.stage,
  r.level,
  r.uid,
  r.node,
  r.revision,
  r.audit_id,
  r.raw
FROM api_requests_rows AS r
-- Two sources may have two stages of one request; the later one knows more.
QUALIFY row_number() OVER (
  PARTITION BY
    r.cluster,
    CASE
      WHEN r.audit_id = '' THEN concat(r.source_id, '/', r.record_no)
      ELSE r.audit_id
    END
  ORDER BY
    r.status IS NULL, r.completed_at DESC NULLS LAST, r.source_id, r.record_no
) = 1
ORDER BY
  r.cluster,
  coalesce(r.requested_at, r.completed_at),
  r.completed_at,
  r.audit_id,
  r.source_id,
  r.record_no
